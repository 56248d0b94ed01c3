"""Makes a tokenizer in DIR: aiperf.py DIR. None can be downloaded where checks run."""

import random
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

WORDS = "wave tank water ship hull drag swell wind port keel sail mast rope tide foam crest deep blue salt".split()
draw = random.Random(1)
texts = [" ".join(draw.choices(WORDS, k=40)) for _ in range(500)]
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
letters = pre_tokenizers.ByteLevel.alphabet()
trainer = trainers.BpeTrainer(vocab_size=1000, special_tokens=["<s>", "</s>"], initial_alphabet=letters)
tokenizer.train_from_iterator(texts, trainer)
whole = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
whole.save_pretrained(sys.argv[1])
