"""A tiny random strands-decider checkpoint, built here and loaded through the package's real path; no hub.

Its answers are near 0.5: good for loading, shapes, windows and concurrency, useless for quality.
"""

import os


def build(folder, max_length=4096):
    """Write a base model and a checkpoint into a folder and return the checkpoint's path."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
    import torch
    from strands_decider.modeling import StrandsDeciderConfig, StrandsDeciderModel
    from transformers import Qwen3Config, Qwen3ForCausalLM

    base, checkpoint = str(folder / "base"), str(folder / "strands-decider-tiny")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    tokenizer = _tokenizer()
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=32768, tie_word_embeddings=True,
    )  # fmt: skip
    Qwen3ForCausalLM(config).save_pretrained(base)
    tokenizer.save_pretrained(base)
    model = StrandsDeciderModel.from_pretrained_base(
        StrandsDeciderConfig(
            base_model=base, head_type="pointer", pointer_dim=32, lora_r=4, lora_alpha=8, torch_dtype="float32",
            max_length=max_length, temperature_by_kind={"noul": 0.9, "choice": 0.8, "score": 1.0},
        )
    )  # fmt: skip
    with torch.no_grad():
        for name, parameter in model.torso.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0, 0.05)
    model.save_pretrained(checkpoint)
    return checkpoint


def _tokenizer():
    from strands_decider.prompting import build_prompt
    from strands_decider.schema import ChoiceQuestion, NoulQuestion, ScoreQuestion
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    questions = (
        NoulQuestion(instructions="Does the note hold a fact that answers the message?"),
        ChoiceQuestion(
            instructions="Which store?", criteria={"tastes": "what they like", "facts": "who", "none": None}
        ),
        ScoreQuestion(instructions="How useful?", criteria=["useless", "background", "needed"]),
    )
    corpus = [build_prompt("When is the release? The user prefers dark mode.", one)[0] for one in questions] * 3
    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1024, special_tokens=["<pad>", "<eos>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    found.train_from_iterator(corpus, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=found, pad_token="<pad>", eos_token="<eos>")
