"""The very frequent words of English and of the languages that English must be told from.

Function words first, then words that short requests are made of. Lower case, apostrophes split off ("l'eau"
is "l" and "eau"). A word may stand in several tables.
"""

from __future__ import annotations

from typing import Final

ENGLISH: Final = frozenset(
    """
    a able about above account ache across actually add adjectives advice after afternoon again against aged ago
    agreed ahead alcohol all allergic allergy allowed almost alone along already also always am an and another
    answer answers any anybody anyone anything anyway app are aren around as ask asked asking asks assessment at ate
    autumn average avoid avoids away back bad badly bank bar bars bathroom battery be beans because bed bedroom
    bedtime been beer before behind being below best better between bicycle big bike birth birthday bit black blind
    block blood blue board boat book booked booking books border bored born both bottle bought box boy bread break
    breakfast bring bro brother budget bullet bus but buy by cabin calendar call called calls came can cannot cant
    car card cards care carries carry case cases cash cat categories cause cent chair change changed changes
    characters charge cheap check cheers cheese chicken chief child children choir choose chose city class clear
    cleared client clinic clock close closed closes club code coffee cold colour come comes coming communication
    company compare confidence contact context contract convert cooking cool copy cost costs could couldn country
    couple crime customer cut cv daily dairy data date dates daughter day daylight days decide degrees delivery
    dentist deposit desk did didn didnt died diet differ difference different dinner disease dislikes do doctor does
    doesn doesnt dog doing dollars don done dont door down draft drink drinks drive driver drives driving drop drops
    dry due during each ear eat eaten eats eggs eight either eleven else email emergency end ends engineer enough
    error euro euros even evening evenings ever every everyone everything exam example expected explain extra failed
    fair fall family far father favor favorite favour favourite fee fell ferry few fiance fiancé field fifteen
    figures file files final find fine fire firm first fish fit five fix fixed flashing flat flight floor flying
    folder food for forget forgot form format forty found four fourth free friday fridge friend from front full fun
    function funny game gate gave get gets getting gift give given gives go goes going gone gonna good got
    grandfather great green group guess gym had hadn half hall hand happen happened hard has hasn hat hate hates
    have haven having he head health hear heart heat hello help her here hers hey hi high him hints his hiya hm hmm
    hold holds home hospital hot hotel hour hours house how however hundred hungry hurts husband i id idea ideas if
    ill im in included inform inside inspection instead insurance intent into invented invoice is isn isnt it its
    itself ive job joke journey just keep keeps kept key kids kind kitchen knew know known knows last late later law
    lease least leave left leisure less let lets letter level lift light like likes limit line lines list litres
    little live lives ll loan log lol long longer look looking lose lost lot love loves low lower lunch machine made
    mail make makes making man manager many market marks mate matters may maybe me meals mean means meant meat
    medicine meet meeting member menu message messages method metres might miles milk mine minus minute minutes
    missed missing model mom monday money month months more morning mornings most mother move moved moving much mum
    music must my myself nah name named names near need needed needs neighbour never new news next nice night nights
    nine no nobody none noon nope nor normally north not note notes nothing notice novels now number numbered
    numbers nurse of off offer offered offers office often oh ok okay old on once one ones only open opened opening
    opens or order other others our ours out outside over own owns pack page paid pan paper paragraph parched
    parents park parking part partner party passport password past pasta pay people per percent person phone pick
    pin place places plain plan planning plans plate play plays please pls plus point points policy polite possible
    post power practice prefer preference present price prices print private probably project promised pull pump put
    python question quick quiet quite quote quotes radio rain rate rather re reach read reading reads ready really
    reason received recipe recommend record red reflection refund refused refuses release remember remind removed
    renewal rents repair replaced reply reports request reserve rest return review reviews rice right ring river
    road room rooms round row rule rules run running runs safe safety said same sat saturday save saw say says
    scheduling school science sea seat seats second see seems send sending senior sent sentence sentences server
    service session set settled seven shall share shared sharp she shellfish shifts shoes shopping short shorter
    should shouldn show shown shows shut sick side sign signed signs since single sister site sits sitting situation
    six size skip sleep sleeps slow small so sold some somebody someone something sometimes son soon sorry sort
    sounds soup spare speaks speed staff stage stairs stand start starting state stay steel steps still stock stood
    stop stops store story straight strong stuck studies study style subject such sugar suggest summarise summarize
    summer sunday supper support sure table tables take taken takes taking talk target taught tax taxi tea teacher
    teaches team tell ten term test tests text than thank thanks that thats the their them then there these they
    thing things think third thirty this those though thought three through thursday thx ticket til till time times
    tip tired title to today together told tomorrow tone tonight too took top topic total train training trains
    transfer translate travel tree tried trip trouble true try trying tuesday turn turns twelve twenty twice twins
    two type tyres u under unit until up update us use used user uses using usual usually valid ve vegetarian
    version very vet video visit visits voice wait waiting walk wall want wanted wants was wasn watch water way we
    weak wear weather wedding wednesday week weekdays weekend weekly weeks weights well went were weren wet what
    whatever whats when where whether which while white who whole whom whose why wide wife will wind window wine
    winter with within without women won wont wood word words work worked working works would wouldn write writes
    writing written wrong wrote yeah year years yep yes yesterday yet yo you your yours yourself
    """.split()
)
"""English words; a text with none of these may still be English ("Pho?")."""

WEAK: Final = frozenset(
    """
    al alla allo au aux con da de degli dei del della delle den der des di do du el en et il in la las le les lo los
    na ne os per por san sin sur ultra van vom von za zu zum zur
    """.split()
)
"""Words that names and dishes carry into English text ("Rio de Janeiro", "tacos al pastor"); they count half."""

PLEASANTRIES: Final = frozenset(
    """
    ack ah aha all alright amazing appreciate appreciated awesome aye bet bravo brilliant btw bye cheers clear cool
    danke deal dear done eh enough evening ever exactly excellent fab fair fantastic fine for friend gg glad go goes
    gone good goodnight got gotcha gracias grand grazie great ha haha happy hehe hello helpful helps hey hi hiya hmm
    hooray how howzit idk it job just k kind legend lifesaver lmao lol lot lots lovely makes many marvellous mate
    merci morning much nah neat nice night no nope noted now np nvm obliged obrigada obrigado of off oh ok okay omg
    one perfect phew please pleased pls plz ready really right righto roger sense settled slower so solid sorted
    sound sounds splendid spot star sure sweet ta take thank thanks that that's thats then there thx tidy till tldr
    to understood up very welcome wicked will wonderful works wow x xx yeah yep yes yo you you're your yup
    """.split()
)
"""Words of greetings, thanks and acknowledgements; a message of nothing else seldom asks for anything."""

FOREIGN: Final[dict[str, frozenset[str]]] = {
    language: frozenset(words.split())
    for language, words in {
        "Spanish": """
            ahora al algo alguien algún alguna amigo antes aquel aquí así aún aunque bien buen bueno buenos buenas
            cada casa casi cena cenar comer comida como cómo con contra cosa cuál cuáles cuando cuándo cuánto cuánta
            cuántos de debería debo del desde después día días dice dijo donde dónde dos el él ella ellos en
            entonces entre era es esa ese eso esta está están estaba estamos estar este esto estos estoy favor fue
            gracias gusta gustan ha había hablar hace hacer hacia hago han hasta hay he hermana hermano hice hijo
            hija hola hora hoy igual la las le les lo los luego mal mañana más me médico mejor menos mesa mi mía mío
            mis misma mismo momento muchas mucho muchos muy nada necesita necesito ni ninguna no noche nos nosotros
            nuestra nuestro nunca os otra otro otros para pero perdón perro poco podemos poder podría ponerme pongo
            por porque prefiero prefiere puede puedes puedo pues que qué quien quién quiere quiero recuerda
            recuérdame reserva sabe sabes se sea según semana ser será sería si sí siempre sin sobre solo sólo somos
            son soy su sus también tan tanto te tengo tenemos tener tenía ti tiempo tiene tienes todas todavía todo
            todos tomar trabajo tu tú tus última último un una uno unos usted usuario vale vamos ver vez viernes voy
            ya yo azúcar leche boda espalda cumpleaños coche dinero dame dime ayuda ayer lunes martes miércoles
            jueves sábado domingo
        """,
        "French": """
            à afin ai ainsi aller alors après as assez au aucun aujourd aussi autre autres aux avait avant avec avez
            avoir avons beaucoup besoin bien bientôt bon bonjour bonne bonsoir ça ce cela celle celui ces cet cette
            chaque chez chose combien comme comment contre dans de déjà demain depuis dernier dernière des deux dire
            dois doit donc donne donnez dont du elle elles en encore enfants ensuite entre es est et était étais
            étaient été être eu eux faire fait fais faut ferai fille fils fois font frère hier hui ici idée il ils
            jamais je jour jours jusqu la là laquelle le lequel les leur leurs lui ma maintenant mais maison mal
            manger médecin même merci mes met mets mieux moi moins mon ne ni non nos notre nous nouveau nuit on ont
            ou où oui par parce parfait pas pendant peu peut peux plus pour pourquoi pourrais pouvez préfère prends
            près prochain puis qu quand que quel quelle quelles quelque quels qui quoi repas réserve rien sa sans se
            sera serait ses seulement si sœur soir sois soit son sont sous suis sur ta table tellement temps tes toi
            ton toujours tous tout toute toutes très trop tu un une utilisateur va vais vas vers veux voici voilà
            vendredi voir vos votre voudrais vous vraiment anniversaire semaine sucre lait vacances mariage lundi
            mardi mercredi jeudi samedi dimanche aide allergène principal rappelle
        """,
        "German": """
            aber alle alles als also am an andere auch auf aus bald bei beim bereits besser bestimmt bin bis bist
            hättest könntest musst sollst soll solltest weißt willst wirst
            bitte brauche brauchen braucht da dabei damit danach danke dann das dass davon dein deine dem den denn
            der des deshalb dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem
            einen einer eines einfach er es essen etwas euch euer für gab ganz geben gehe gehen geht genau gerade
            gern gerne gestern gesagt gib gibt gleich gut gute guten hab habe haben hallo hast hat hatte hatten
            heißt heute hier hilft hinter ich ihm ihn ihnen ihr ihre im immer in ins irgendwas ist ja jede jeden
            jeder jetzt kann kannst kein keine keinen klar können könnte könnten kommt kurz lass letzte letzten
            lieber mach mache machen macht mag magst mal man mehr mein meine meinem meinen meiner meines meinst mich
            mir mit möchte morgen muss müssen nach nächste nächsten nein nicht nichts nie noch nochmal nur ob oder
            ohne schon schön schreib sehr sei sein seine seinen seit sich sie sind so soll sollen sollte sonst stell
            tisch tut über um und uns unser unsere unter viel viele vielen vom von vor wann war waren warum was weg
            wegen weh weil weiß welche welcher welches wenig wenn wer werde werden wie wieder will wir wird wo woher
            wohin wollen wurde würde zeig zieh ziehe zu zum zur zwei zwischen freitag montag dienstag mittwoch
            donnerstag samstag sonntag geburtstag schwester bruder arzt nutzer trinkt buche
        """,
        "Italian": """
            abbiamo ai al alla alle allo allora altra altro anche ancora andare appena avere aveva avevamo avevo
            avete bella bello bene bisogno buon buona buongiorno che chi ci ciao cioè colpa come con cosa così cui
            da dai dal dalla dammi dare davvero degli dei del dell della delle dello deve devo di dice dimmi dire
            dopo dov dove dovrei dovremmo due è ed era erano essere fa faccio fai fammi fanno fare fatto figlia
            figlio fino fra già gli grazie ha hai hanno ho idee ieri il in indosso insieme io la là le lei li lo
            loro lui lunedì ma mai male mangiare mattina me medico meglio meno mi mia mie miei mille mio molto ne
            nei nel nella nelle nessuno niente no noi non nostra nostro nulla oggi ogni oppure ora pensavo per
            perché perfetto però piace più poco poi porta possiamo posso potrebbe potrei preferisce preferisco
            preferito prenota prima prossima prossimo pranzo può puoi qual quale quali qualche qualcosa quando
            quanto quella quelle quelli quello questa queste questi questo qui ricordami ringrazio sai sarà scarpe
            scusa se sei sempre senza si sì sia siamo solo sono sopra sorella sotto sta stai stasera stato stesso
            sto su sua subito sul sulla suo suoi tanto te ti tra troppo tu tua tuo tutta tutti tutto un una uno
            utente va vado vai vediamo venerdì vi voglio vorrei zucchero matrimonio schiena servono compleanno
            domani cena
        """,
        "Portuguese": """
            à agora ai ainda além algo alguém algum alguma almoço amanhã amigo ano antes ao aos aqui as assim até
            bem boa bom cada café carro casa casamento coisa com como costas da das de deles depois desde dia disse
            dizer do dois dos é ela elas ele eles em entre era esse essa esta está estão estava este estou eu exato
            faço falar falta faz fazer ficar filha filho foi fui gosta gosto grávida há hoje hora ideias irmã irmão
            isso isto já jantar lá lhe lugar mais mas me médico melhor menos mesa mesmo meu meus minha minhas muito
            muita muitos na nada não nas nem nenhum no noite nós nos nossa nosso nova novo num numa nunca obrigada
            obrigado olá onde ontem os ou outra outro outros para pela pelo pode podemos poder podes pois por porque
            posso pouco precisa preciso prefere prefiro qual quais qualquer quando quanto quantos que quê quem quer
            quero reserva saber se segunda sei sem semana sempre sendo ser será seria seu seus sexta sim só sobre
            são sou sua suas tá também tão tarde te tem têm temos tenho ter teu tinha toda todas todo todos trabalho
            tu tua tudo um uma uns usuário vai vamos vez visto você vocês vou açúcar leite aniversário lembra tchau
            vezes
        """,
        "Dutch": """
            aan af al alle alleen alles als altijd andere auto bedankt beetje begint ben bent beter bij bijna boek
            daar dag dan dank dat de deze die dit doe doen doet door drie drinkt dus een eens eerst en er ergens
            eten even ga gaan gaat gebruiker geef geen gehad geweest gewoon goed goede graag haar had hadden hallo
            heb hebben hebt heeft heel help hem het hier hij hoe hoeveel hun iemand iets ik in is ja je jij jou jouw
            jullie kan keer kleine komt krijg kun kunnen laat laatste leuk maak maar maken man me meer meest men met
            mij mijn misschien moet moeten mogen morgen na naar niet niets nieuwe nodig nog nooit nou nu of om omdat
            onder ons onze ook op over plaats rug samen school schrijf snel sommige staat steeds straks tafel te
            tegen ten terug toch toe toen tot trek tussen twee uit uur vaak van vanavond vandaag veel veertig verder
            verjaardag vertel vind voor vraag vrijdag waar waarom waarop wanneer want waren was wat week weer weet
            wel welke werd werk wie wij wil willen word worden wordt zaterdag ze zeg zei zeggen zelf zeer zich zie
            zien zijn zo zoals zoon zonder zou zuiker suiker zus koffie dochter bruiloft ideeën last jarig huis
        """,
        "Swedish": """
            alla allt aldrig att av bara barn behöver bli blir boka bord bra bröllop bröllopet dag de dem den denna
            dess det detta dig din dina ditt dotter dricker där därför då efter eftersom ej eller en ett fick finns
            fredag fyller få får för före första från fyra ge gick gillar god gå går gör göra ha hade han handla
            hans har hej heter hjälp hjälpen hon hur här icke idag idé idéer igen igår ikväll imorgon in inga ingen
            inte jag ju kaffe kan klockan kom kommer kunde kväll lite lägg man med men mer mig min mina mitt mot
            mycket många måste ner nog nu något några när och också okej om ont oss på redan ryggen sade sa sedan
            ser sig sin sina ska skall skor skriv skulle som son sons sova stor storlek står så säga säger tack
            tandläkare till tid två tycker under upp ut utan vad var vara varför varit vem vi vid vilka vilken
            vilket vill vår våra ville vänta år åt är äta över användaren socker syster
        """,
        "Danish and Norwegian": """
            af aldrig alle at av bare begge bestil blev bli blir blive bliver bord brød da dag dagen de deg dem den
            denne der deres det dette dig din dine ditt du efter eller en er et etter fik for fordi fra fredag få
            får før gi gik god godt gå går gør gøre ha hadde hans har havde hedder heter hej hei hen hende her hjelp
            hjælp hva hvad hvem hver hvilken hvilket hvis hvor hvordan hvorfor hvornår idag igen igjen ikke ind
            ingen inn ja jeg kaffe kan kom kommer kunne lidt litt lige mange med meg meget men mener mere mest mig
            min mine mit mitt mod må måske navn ned nei nej noe noen noget nogen nok nu nå når og også om op opp os
            oss over på sagde sa samme se selv sig sin skal skrive skulle som spise stor så søn søster tak takk
            tandlæge tannlege til timeplan to trenger tror ud uden under ut uten vad var ved vei vel ville vil vi
            være vær vår år
        """,
        "Finnish": """
            aina anna asia ehkä ei eikä että eli en entä ennen hei hyvä hyvää hän ilman itse ja jo joka jos jossa
            juhlat juuri kahvia kaikki kanssa keitä kenen kiitos kiitti klo koska kuin kuka kun kuinka kyllä lisää
            luo lähellä me mene mihin miksi mikä millainen millä milloin minulla minulle minua minun minä missä
            mistä mitä mitään mutta muistatko myös ne niin nimi noin nyt oikein ole olen oletko oli olisi olla on
            onko ovat paljon perjantai pitää pitäisi pöytä sanoi se sen siellä sinä sitten sitä söisin söin tai
            tarvitsen tämä tämän tänään uusi vaan vai vain varaa voi voin voisin voisitko vielä voinko äiti
            hammaslääkärini huomenna
        """,
        "Polish": """
            ale albo ani bardzo bez bo być był była było by chce chcę chciałbym chyba ci cię co coś czemu cześć czy
            czyli dla do dobra dobrze dobry dokąd dzień dziękuję dzięki dziś dzisiaj fajnie gdy gdzie go ich ile im
            innego ja jak jaka jaki jakie jakieś jako je jego jej jest jestem jeszcze jeśli już każdy kiedy kogo kto
            która które który którym lepiej lubi lubię ma mam mamy mi mieć mnie może można mogę moich moim mój moja
            moje mojego mojej mu musi muszę my na nad nam nas nasz nazywa nic nie niech niego nim nimi niż no obiad
            od on ona oni osób pan pani piątek po pod pokaż pomoc pomysłów poproszę potem potrzebuję powiedz
            powinienem powinno proszę przed przez przy przypomnij razem ręce rzecz są się siebie siostra skąd sobie
            stolik swój syna szkole ta tak także tam te tego tej ten teraz też to tobie trochę trzeba tu twój twoja
            ty tylko tym ubrać ubieram wczoraj we wesele wiem więc właśnie wolę woli wszystko wszystkie wtedy wy za
            zawsze ze znowu zrób zrobić zrobię zarezerwuj został że żeby żona kawę cukru jutro urodzin urodziny
            użytkownik boli plecy dentysta lekarz
        """,
        "Czech and Slovak": """
            aby aj ale ani asi až bez bol bola bolo bude budem budu by byl byla bylo být co čo či dnes do doma dva
            hodin já ja jak jaká jaké jaký jako je jeho její jej jen ještě jestli již jsem jsi jsme jsou kam kde kdo
            kdy kedy když keď který která které kolik koľko kto lístek má mám mají máme mě mi moc moje mojí můj môj
            musím my na nad nám nás náš ne než nebo nechce nejsem není nie nic niečo něco od on ona pak po pod podle
            podľa potřebuju potrebujem pro pre proč prečo prosím před pri při sa se si som sestra stojí sú svůj ta
            tady tak také takže tam teď ten tento to tohle toho tu ty už vám vás včera večeři večer velmi ve všechno
            vždy za zde zítra že žena děkuju děkuji díky ďakujem ahoj dobrý jmenuje narozeniny
        """,
        "Turkish": """
            acaba ama ancak artık ayırt az bana bazı belki ben benden beni benim bir biraz biri birkaç birşey biz
            bize bizi bizim bu buna bunu bugün burada çok çünkü da daha dahi de değil diye doktor doktorum doğum dün
            eğer en evet gerek gibi giysem giyeyim göre günü güzel hangi hatırla hatırlat hem hemen hep hepsi her
            hiç için içer ile ise iki ihtiyacım istiyorum işte kaç kadar kahve karşı kız kim kime kimin kişilik
            kullanıcı mı mi mu mü masa merhaba nasıl ne neden nedir nerede nereye neydi neyi niye olan olarak oldu
            oldun olur olsun ona onlar onu onun orada önce peki rica sabah saat sana sen senin siz sizin sonra söyle
            şey şimdi şu tamam tane teşekkür teşekkürler tüm var ve veya ya yani yap yapar yaparım yapmam yarın yer
            yemeği yine yok yoksa zaman lazım adı akşam cuma hayır lütfen kardeşimin
        """,
        "Indonesian and Malay": """
            ada adalah agar akan aku anak anda apa apakah atau awak bagaimana bagi bagus bahwa baik baju banyak
            bantuan baru bawa belum berapa beri besok bila biasa bisa boleh buat bukan butuh cari dalam dan dari
            dengan di dia dokter dua gak gigi gimana hari harus ialah ide ini itu jadi jam jangan jika juga jumat
            kakak kalau kali kamu kami kapan karena kasih kata ke kepada kerjakan kerja ketika kita kopi kok lagi
            lah lain lebih lupa makan makasih malam mana masih mau meja memesan mengapa mereka minum mungkin nama
            nanti nggak oleh orang pada pagi pakai paling perlu pernah pengguna pergi pesan pesta pulang punya sakit
            saja sama sampai sangat satu saya sebagai sebelum secara sedang sekarang sekali selalu semua seperti
            sering setelah siang siapa sini situ suami suatu sudah suka tahu tahun tanggal tanpa tapi telah tempat
            tentang terakhir terima tetapi tidak tolong ulang untuk waktu ya yang sih dong deh gula buku
        """,
        "Romanian": """
            acasă acest această acum ai aici al ale am aproape ar are astăzi asta atunci au avea avem azi bine bună
            ca că când cât câte ce cea cel cele cine cineva cu cum da dacă dar de deci decât despre din după ea ei
            el ele era este eşti eu făcut fără fi fie fost foarte iar îi îl îmi în încă într îşi ia la le lui mă mai
            masă mea mele mergem mâine meu mine mulțumesc mult nevoie nici nimic noi nostru nu numai ori pe pentru
            poate pot prea prin rezervă sa să sau se sînt spune și şi știu sunt sus te toate tot trebuie tu un unde
            unei unui vă vineri voi vreau vrei vroiam lăsat cheile soră
        """,
        "Hungarian": """
            abban ahol akar akarok aki akkor alatt által amely ami amikor annak arra az azért azt azzal be benne
            bele csak de egy egyik el ekkor elég én engem ennek erre ez ezek ezért ezt fel foglalj hanem hány hát
            hogy hogyan hol holnap honnan ide így igen ilyen is itt jó jól kell kellene ki kicsit köszönöm köszi
            lehet lesz le ma már még meg mennyi mert mi miért mikor milyen mindig mit most nagyon nagy ne neki nekem
            nélkül nem nincs ő ön ők olyan össze ott pedig rá sem semmi szabad szeretnék szerint szia tegnap tud
            tudod után utána üdv vagy vagyok van vannak végre velem volna volt voltam kulcsom asztalt péntekre
            nővérem
        """,
        "Catalan": """
            això als amb així aquest aquesta aquí ara avui bé com cosa dels després divendres dir dues el ell ella
            els em és estic fer fins ha hi ho jo la les li més meu meva molt molta moltes mica molts no on per
            perquè però podem poder pot puc qui quan què quin quina res sense sempre seva si sóc són sopar també te
            tinc tot tots un una uns va vaig vol vull gràcies demà taula germana
        """,
        "Croatian and Serbian": """
            ako ali bez bi bih bila bilo bio bismo biti budem čak čemu danas da dan do dobro dva dvoje ga gdje gde
            hoće hoću hvala iako ih ili imam imamo ima iz ja jako je jedan jedna jednu jer jesam još kad kada kako
            kakav kao ko kod koja koje koji koju koliko kome kroz li me mene meni mi mnogo mogu moj moja moje mojem
            možda može molim moram na nad nakon nam nas naš ne neće nego neki nešto ni nije nisam nisu no od oko on
            ona oni ono ovo ova ovaj petak pa po pod pored pre prije rezerviraj sa sam samo se sestra si sjutra smo
            ste što šta su sutra svi sve ta tako treba trebam tu uvijek uz već vi za zašto zbog zove zubar
        """,
        "Vietnamese": """
            anh ăn bạn bao biết cái các cảm cần chị chưa cho có con của cũng đã đâu đây để đi được em gì giờ hay hôm
            không là làm lại mai mấy mình món một muốn nào này nay nên người nhà những như ơn ở phải qua ra rất rồi
            sao sẽ sinh tên thế thì thích thứ tối tôi trong và vào về với vợ xin
        """,
        "Swahili": """
            asante bila hii hiyo huyu jana jina kama kesho kuhusu kwa kwamba kwenye lakini leo mimi moja mtu na
            naomba nataka ndiyo ni nina ninahitaji nini pia sana sasa tafadhali wa wangu wapi watu wewe wote ya
            yangu yake za habari gani lini
        """,
        "Tagalog": """
            ako ang anong ano at ay ba bakit bukas dahil din dito gusto hindi ikaw ito iyan ka kailan kailangan kami
            kanyang kasi kay ko kung lang mabuti mag mga mo na naman namin ng ngayon ngunit nito noong oo pa paano
            para po rin sa saan salamat sana si sila sino siya tayo wala yung
        """,
    }.items()
}
"""Words per language that short requests in it hardly avoid."""
