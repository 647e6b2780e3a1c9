"""Strip thinking and template tokens from replies.

Some servers separate thinking (vLLM's ``--reasoning-parser``). Others leave it in the text with the template's marks.
Qwen, DeepSeek and most others write ``<think>``; often the template writes the opening mark, so that the reply has only
the closing one. Seed, MiniMax and LongCat use other tag names, Magistral ``[THINK]``, Kimi ``◁think▷``, OpenThinker
``<|begin_of_thought|>``, Cohere ``<|START_THINKING|>``, Apertus ``<|inner_prefix|>``, Gemma ``<|channel>thought``,
Granite sentences. gpt-oss writes channels, of which only the last is the answer.
"""

import functools
import re
from bisect import bisect_left

_NAME = r"(?:\w{1,20}[:_])?(?:think(?:ing)?|thoughts?|reason(?:ing)?|scratchpad)(?:[:_]\w{1,20})?"
_FIRST = rf"""
    <\s?{_NAME}\s?> | \[THINK\] | ◁think▷ | <\|(?:begin_of_|start_)?{_NAME}\|> | <\|inner_prefix\|> | <unused94>
    | <\|channel>\s*thought | <\|open\|>think<\|sep\|> | (?:<\|start\|>assistant)?<\|channel\|>(?!\s*final\b)
"""
# At the start of a reply: gpt-oss's analysis channel without special tokens, and Granite's sentence.
_HEAD = r"""(?-i:analysis(?=["'A-Z])) | here(?:\ is|'s)\ my\ thought\ process:"""
# The final channel can occur without marks if the server drops special tokens.
_LAST = rf"""
    <\s?/\s?{_NAME}\s?> | \[/THINK\] | ◁/think▷ | <\|(?:/|end_of_|end_){_NAME}\|> | <\|{_NAME}_end\|>
    | <\|inner_suffix\|> | <unused95> | <channel\|> | <\|close\|>think<\|sep\|>
    | <\|channel\|>\s*final\b[^<\n]*(?:<\|constrain\|>[^<\n]*)?<\|message\|> | \bassistantfinal
"""
# Start of the answer, even if no closing mark precedes it.
_ANSWER = r"""
    <(?:answer|response|solution|output)> | ^here(?:\ is|'s)\ my\ response:
    | <\|begin_of_solution\|> | <\|START_RESPONSE\|> | <\|open\|>response<\|sep\|> | <\|content\|>
"""
_MARK = re.compile(
    rf"(?P<last>{_LAST}) | (?P<first>{_FIRST}) | (?P<answer>{_ANSWER}) | ^[ \t]*(?P<head>{_HEAD})",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
# Closing tags with other names need an opening one: programs and markup have elements such as <reason>.
_NEEDS_FIRST = re.compile(r"<\s?/\s?(?!\S*(?:think|reasoning))", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
# A mark in quotation marks or backticks is a mention.
_QUOTES = "`'\"“”"
# At the end of a reply: "<|im_end|>", "</s>", DeepSeek's "<｜end▁of▁sentence｜>", Gemma's "<end_of_turn>".
_END_OF_TURN = re.compile(
    r"(?:<\|close\|>\w+<\|sep\|>|<[|｜][^<>|｜\s]{1,40}[|｜]>|</?s>|<(?:eos|end_of_turn|turn\|)>|\[/INST\])\Z"
)
_LONGEST_MARK = 50
# Signs that the text before the reasoning is an answer. "Here is my solution:" has none of them.
_SAYS = re.compile(r"[\d$`\\]|\b[B-J]\b|\bA\b(?! [a-z])")


# Cached, since trainings read the same replies again and again.
@functools.lru_cache(maxsize=2048)
def without_thinking(text: str, cut_off: bool = False) -> str:
    """Return a reply without its thinking: the text after the last closing mark, up to an unclosed opening mark.

    If the reply ends with its reasoning, the text before it is returned. A reply of thinking alone is returned whole,
    or empty if it was cut off at max_tokens.
    """
    begin, opened = 0, None
    last = len(text[: _before_end_of_turn(text, 0, len(text))].rstrip())
    fences = [fence.start() for fence in _FENCE.finditer(text)]
    for match in _MARK.finditer(text):
        before, behind = bisect_left(fences, match.start()), bisect_left(fences, match.end())
        # A fenced program may contain such marks.
        is_in_program = (before - bisect_left(fences, begin)) % 2 and (len(fences) - behind) % 2
        if _is_quoted(text, match) or (opened is None and (is_in_program or _NEEDS_FIRST.match(match[0]))):
            continue
        if match["last"] and opened is not None and match.end() >= last and _SAYS.search(text, begin, opened):
            break  # The reasoning follows the answer.
        if match["last"]:
            begin, opened = match.end(), None
        elif match["first"] or match["head"]:
            if opened is None and _begins_line(text, begin, match):
                opened = match.start()
        elif match["answer"].startswith("<|"):
            begin, opened = match.end(), None
        elif opened is not None:
            begin, opened = match.end() if match["answer"][0] != "<" else match.start(), None
    end = _before_end_of_turn(text, begin, len(text) if opened is None else opened)
    is_said = cut_off or (text[begin:end].strip() if opened is None else _SAYS.search(text, begin, end))
    return text[begin:end] if is_said else text


def _is_quoted(text: str, match: re.Match[str]) -> bool:
    before, behind = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    return bool(before and behind) and before in _QUOTES and behind in _QUOTES


def _begins_line(text: str, begin: int, match: re.Match[str]) -> bool:
    start = max(begin, match.start() - _LONGEST_MARK)
    line = text[start : match.start()] if match["head"] else text[start : match.start()].rpartition("\n")[2]
    return not line.strip() and (start == begin or len(line) < match.start() - start)


def _before_end_of_turn(text: str, begin: int, end: int) -> int:
    while True:
        last = end
        while last > begin and text[last - 1].isspace():
            last -= 1
        start = max(begin, last - _LONGEST_MARK)
        match = _END_OF_TURN.search(text[start:last])
        if match is None:
            return end
        end = start + match.start()
