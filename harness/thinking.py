"""Strip thinking and template tokens from replies.

Some servers separate thinking (vLLM's ``--reasoning-parser``). Others leave it in the text with the template's marks.
Qwen, DeepSeek and most others write ``<think>``; often the template writes the opening mark, so that the reply has only
the closing one. Seed and MiniMax use other tag names, Magistral ``[THINK]``, Kimi ``◁think▷``, OpenThinker
``<|begin_of_thought|>``, Cohere ``<|START_THINKING|>``, Gemma ``<|channel>thought``. gpt-oss writes channels, of which
only the last is the answer.
"""

import functools
import re

_NAME = r"(?:\w{1,20}[:_])?(?:think(?:ing)?|thoughts?|reasoning)(?:[:_]\w{1,20})?"
_OPENED = re.compile(
    rf"^[ \t]*(?:<{_NAME}>|\[THINK\]|◁think▷|<\|(?:begin_of_|start_){_NAME}\|>|<\|channel>\s*thought"
    r"|<\|channel\|>(?!\s*final))",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSED = re.compile(
    rf"</{_NAME}>|\[/THINK\]|◁/think▷|<\|end_(?:of_)?{_NAME}\|>|<channel\|>|<\|channel\|>\s*final\b[^<\n]*<\|message\|>",
    re.IGNORECASE,
)
# At the end of a reply: "<|im_end|>", "</s>", DeepSeek's "<｜end▁of▁sentence｜>", Gemma's "<end_of_turn>".
_END_OF_TURN = re.compile(r"(?:\s*(?:<[|｜][^<>|｜\s]{1,40}[|｜]>|</s>|<(?:end_of_turn|turn\|)>))+\s*\Z")
_LONGEST_END = 200


# Cached, since trainings read the same replies again and again.
@functools.lru_cache(maxsize=2048)
def without_thinking(text: str, cut_off: bool = False) -> str:
    """Return a reply without its thinking: the text after the last closing mark, up to an unclosed opening mark.

    If the reply ends with its reasoning, the text before it is returned. A reply of thinking alone is returned whole,
    or empty if it was cut off at max_tokens.
    """
    if end_of_turn := _END_OF_TURN.search(text[-_LONGEST_END:]):
        text = text[: len(text) - len(end_of_turn[0])]
    begin = max((mark.end() for mark in _CLOSED.finditer(text)), default=0)
    opened = _OPENED.search(text, begin)
    end = opened.start() if opened else len(text)
    if text[begin:end].strip() or cut_off:
        return text[begin:end]
    first = _OPENED.search(text)
    return text[: first.start()] if first and text[: first.start()].strip() else text
