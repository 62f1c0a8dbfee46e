"""Short texts, with whether the English model can read them. Written by hand for these tests.

Even positions of each list were used to choose words and limits, odd positions only to measure.
"""

from __future__ import annotations

READABLE = """
ok cool
Hiya
Pho?
Thanks a bunch, that did it!
Book Noma for Søren
pho or laksa?
lol nvm
What's 17% of 240?
Any news from José about the flat?
Is this right? 'A minha filha é grávida.'
def merge(a, b): return sorted(a + b)
SELECT * FROM orders WHERE status = 'late'
gimme smth quick 4 dinner
Dinner ideas?
Köln or Düsseldorf for the weekend?
Marcus is at it again.
42
INV-2026-0117
hmm
Reserve a table at Le Comptoir du Relais
Cheers mate
Translate 'Guten Morgen, wie geht es dir?' into Spanish
Where did I park?
npm ERR! code ELIFECYCLE
Søren Kierkegaard
What wine goes with boeuf bourguignon?
k thx
Morning! How's it going?
Remind Zoë about the crème brûlée torch
wat time is it in tokyo rn
When's Opa's birthday?
crème brûlée or tiramisù tonight?
Can you call Señor Peña back for me?
git rebase -i HEAD~3
https://example.com/a/b?c=d
How do you say 'where is the station' in Polish?
ya
Give me a recipe for pierogi ruskie.
Play something by Sigur Rós
¯\\_(ツ)_/¯ whatever
I moved to São Paulo last week.
Gnocchi alla sorrentina please
pls fix teh typo in my cv
Summarise the minutes.
my fiancé hates cilantro
No idea, you pick.
Nah
Book Osteria Francescana for Lucia and me
Add jalapeños to the list
Who's Nguyễn Thị Minh again?
TypeError: unsupported operand type(s) for +: 'int' and 'str'
When does the Deutsche Bahn strike end?
😀😀
Feijoada tonight?
!!!
Is Smørrebrød the one I liked?
x = 3; y = x ** 2
my son starts at the Gymnasium in August
Write to Müller & Söhne GmbH about the invoice.
sounds good
What does 'Je ne sais quoi' mean?
Où est la bibliothèque? - what does that mean?
ramen
bro that was insane
Which of the two flights lands before the wedding?
Ask Łukasz if Kraków works.
Tell me a joke
Vegan?
set -euo pipefail
Tacos al pastor or cochinita pibil?
same as last time
The user prefers Côtes du Rhône over Malbec.
Has the parcel from Żabka arrived?
I'm parched.
u there?
Draft a polite no to Herr Schmidt.
no sugar
Facebook or Instagram?
2 + 2
What's the dosage for ibuprofen in kids?
Doner kebab, ayran, and a side of tabbouleh
is it cos of the tyres
Bonjour Paris tour: worth it?
tbh idk
Rigatoni carbonara for 6
How was the concert in Malmö?
Find me a B&B near Plaza Mayor in Salamanca
Red or white?
Ich bin ein Berliner - who said that?
Dr. Ngozi Okonjo
yes please
Ciao for now!
the usual
What did Mama say about the Weihnachtsmarkt?
ERROR 1045 (28000): Access denied for user 'root'@'localhost'
Gracias! And what about Tuesday?
Pick a film
Hola, can you check my calendar?
omg yesss
Who do I know in Göteborg?
User said twice that calls after 18:00 are unwelcome.
Ordering a hot drink: oat flat white, no sugar.
lunch w/ Beatriz 1pm
De Niro or Pacino?
Can I take paracetamol with it?
Renew la tarjeta thing, the gym one
Is Las Palmas warmer than El Hierro in March?
Any plans for Día de los Muertos?
sup
Do me a favour and ring Granny.
Los Angeles
Per la Sig.ra Bianchi: please send the quote again
La Traviata tickets for two
Les Misérables or Die Zauberflöte?
Compare der Spiegel and le Monde.
docker compose up -d
what about the die cast model
La La Land
Al dente?
No me gusta is what he said, so skip the olives.
""".strip().splitlines()

FOREIGN = """
¿Qué me pido para cenar?
Welche Schuhgröße hat mein Sohn noch mal?
Obrigado, era isso mesmo!
Come avevamo risolto l'errore del certificato?
Wie funktioniert eine Wärmepumpe?
Quel est mon allergène principal ?
Hoe laat moet ik morgen op school zijn?
Jak się nazywa mój dentysta?
Vad heter min tandläkare?
Doktorumun adı neydi?
Siapa nama dokter gigi saya?
Gracias por todo
Danke, das hilft mir sehr.
Merci beaucoup pour ton aide
Grazie mille, perfetto!
Dank je wel, tot morgen
Dziękuję bardzo, to wszystko
Tack så mycket för hjälpen
Teşekkür ederim, çok yardımcı oldun
Terima kasih banyak ya
Reserva una mesa para dos el viernes
Buche mir einen Tisch für zwei am Freitag
Réserve une table pour deux vendredi
Prenota un tavolo per due venerdì sera
Reserva uma mesa para dois na sexta
Boek een tafel voor twee op vrijdag
Zarezerwuj stolik dla dwóch osób na piątek
Boka ett bord för två på fredag
Cuma günü için iki kişilik masa ayırt
Pesan meja untuk dua orang hari Jumat
Cuándo es el cumpleaños de mi hermana
Wann hat meine Schwester Geburtstag
C'est quand l'anniversaire de ma sœur
Quando è il compleanno di mia sorella
Quando é o aniversário da minha irmã
Wanneer is mijn zus jarig
Kiedy moja siostra ma urodziny
När fyller min syster år
Kız kardeşimin doğum günü ne zaman
Kapan ulang tahun kakak saya
El usuario prefiere el café sin azúcar.
Der Nutzer trinkt seinen Kaffee ohne Zucker.
L'utilisateur préfère le café sans sucre.
L'utente preferisce il caffè senza zucchero.
O usuário prefere café sem açúcar.
De gebruiker drinkt zijn koffie zonder suiker.
Użytkownik woli kawę bez cukru.
Användaren dricker kaffe utan socker.
Kullanıcı kahvesini şekersiz içer.
Pengguna lebih suka kopi tanpa gula.
Hvad hedder min tandlæge?
Mikä on hammaslääkärini nimi?
Где я припарковался?
私の歯医者の名前は何ですか
我的牙医叫什么名字?
ما اسم طبيب أسناني؟
Πώς λέγεται ο οδοντίατρός μου;
내 치과 의사 이름이 뭐예요?
מה שם רופא השיניים שלי?
मेरे दंत चिकित्सक का नाम क्या है?
vale, perfecto, lo hago mañana
alles klar, mach ich gleich
d'accord, je le ferai demain
va bene, lo faccio domani
tá bom, faço amanhã
oké, dat doe ik morgen wel
ok, fajnie, zrobię to jutro
okej, jag gör det imorgon
tamam, yarın yaparım
oke, besok saya kerjakan
Necesito ideas para la comida de cumpleaños de mi hijo
Ich brauche Ideen für das Geburtstagsessen meines Sohnes
Il me faut des idées pour le repas d'anniversaire de mon fils
Mi servono idee per il pranzo di compleanno di mio figlio
Preciso de ideias para o almoço de aniversário do meu filho
Ik heb ideeën nodig voor het verjaardagsdiner van mijn zoon
Potrzebuję pomysłów na urodzinowy obiad dla syna
Jag behöver idéer till min sons födelsedagsmiddag
Oğlumun doğum günü yemeği için fikre ihtiyacım var
Saya butuh ide untuk makan malam ulang tahun anak saya
que me pongo para la boda
was ziehe ich zur Hochzeit an
je mets quoi pour le mariage
cosa mi metto per il matrimonio
o que visto para o casamento
wat trek ik aan naar de bruiloft
w co mam się ubrać na wesele
vad ska jag ha på mig på bröllopet
düğünde ne giysem
pakai baju apa ke pesta pernikahan
Mein Rücken tut schon wieder weh
Me duele otra vez la espalda
J'ai encore mal au dos
Mi fa ancora male la schiena
As minhas costas doem outra vez
Ik heb weer last van mijn rug
Znowu boli mnie plecy
Jag har ont i ryggen igen
Yine belim ağrıyor
Punggung saya sakit lagi
Vilken storlek har jag i skor?
Qual è il mio ristorante preferito a Milano?
Was hatten wir über das Budget gesagt?
Combien on avait prévu pour les vacances ?
Mám doma něco k večeři?
Kolik stojí lístek do Prahy?
Unde am lăsat cheile?
Hol van a kulcsom?
Jeg trenger en ny timeplan
Tôi nên ăn gì tối nay?
""".strip().splitlines()
