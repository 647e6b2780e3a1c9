"""Texts that no model should write and some do: broken markup, confusable characters, repetition without end."""

from hypothesis import strategies as st

LONGEST = 100_000
# fmt: off
NUMBERS = st.sampled_from([
    "0", "7", "-3", "1,234.50", "1e5", "1E-3", ".5", "5.", "0x1F", "007", "1_000", "3/4", "-1/0", "1e400", "-0",
    "50\\%", "$12", "12:30", "1.2.3", "Infinity", "nan", "9e", "9" * 400, "1" + ",000" * 50,
    "١٢٣", "１２", "½", "²", "−4", "–4", "4\u00a0000", "\u0661.5", "①", "Ⅷ", "٫5",
])
BRACKETS = st.sampled_from([
    r"\boxed{", r"\fbox {", r"\boxed{}", r"\boxed", "{", "}", r"\{", r"\}", "(", ")", "[", "]", "\\", r"\\", "&",
    r"\left(", r"\right)", r"\left.", r"\right]", r"\begin{pmatrix}", r"\end{pmatrix}", r"\begin{", r"\end{x}",
    r"\frac", r"\frac{", r"\dfrac1", r"\sqrt[", r"\sqrt", r"\text{ ", r"\text{(C)}", r"\mathbf{", "^", "_", "^{",
    "$", "$$", r"\(", r"\)", r"\[", r"\]", r"\!", r"\,", r"\cdot", r"\infty", r"\pi", r"\degree", r"^\circ", "!",
    r"\cup", r"\in", r"\le", r"\ne", r"\pm", r"\to", r"\ldots", r"\%", "=", "x=", "<", "|", "°", "%", "~",
    r"\def\a{\a\a}\a",
])
WORDS = st.sampled_from([
    "The answer is ", "answer is", "ANSWER IS: **", "Answer: ", "the answer\nis ", "Final answer is\n", "#### ",
    "(A)", "B.", "option C", "**D**", " I ", "A and B", "J)", "(K)", "Ａ", "А", "none of the above", "A" * 50,
    "```python\n", "```", "```py", "~~~\n", "````\n", "\n```\n", "`", "``` ```", "```output\n", "'''", '"""',
    "def f(x):\n    return x\n", "import os\n", "lambda: 0", "class ", "return ", "    ", "\t", "x = 1\n", "if 1:\n",
    "__import__('os').system('true')", "().__class__.__bases__", "exec('1')", "factorial(9**9)", "print(1)\n",
    "f" + "(" * 90, "[" * 200, "-" * 300, "not " * 200, "{" * 100, "1" + "+1" * 300, "x" + ".x" * 300,
    "\n", "\r\n", "\r", " ", "\u2028", "\x0c", "\x00", "\x1b[31m", "\x7f", "\ufeff", "\u200b", "\u202e", "\u0301",
    "\ud800", "\udfff", "\U0001f600", "\ufffd", "\u1e9e", "İ", "ﬁ", "\u00ad", "<think>", "</think>", "<|im_end|>",
])
AROUND = st.sampled_from([
    "{}", "({})", "[{}]", r"\boxed{{{}}}", r"\sqrt{{{}}}", r"\left({}\right)", "-{}", "{}!", "|{}|", "{}%",
    r"\text{{{}}}", "${}$", r"\({}\)", r"\sin {}", r"\log_2 {}", r"\overline{{{}}}", r"\{{{}\}}", "{}^{{-1}}",
])
BETWEEN = st.sampled_from([
    r"\frac{{{}}}{{{}}}", "{}^{{{}}}", "{}_{{{}}}", "{}+{}", "{}, {}", "{}/{}", "{}={}", "({}, {}]", "{} {}",
    r"\sum_{{i=1}}^{{{}}} {}", r"\prod_{{k={}}}^{{9}} {}", r"\int_0^{{{}}} {} dx", r"\binom{{{}}}{{{}}}",
    r"\begin{{pmatrix}}{} & {} \\ 1 & 2\end{{pmatrix}}", r"{}\cdot{}", r"{}\cup{}", r"{} \pmod{{{}}}", "{}<{}",
])
# fmt: on
FORMULAS = st.recursive(
    NUMBERS | st.sampled_from(["x", "y_1", r"\pi", "i", r"\infty", "", "abc"]),
    lambda inner: st.builds(str.format, AROUND, inner) | st.builds(str.format, BETWEEN, inner, inner),
    max_leaves=12,
)
FRAGMENTS = st.one_of(NUMBERS, BRACKETS, WORDS, FORMULAS, st.text(max_size=8))
MIXTURES = st.lists(FRAGMENTS, max_size=14).map("".join)
REPEATED = st.builds(
    lambda piece, times, end: (piece * times)[:LONGEST] + end, FRAGMENTS, st.integers(1, LONGEST), MIXTURES
)
TEXTS = st.one_of(*[MIXTURES] * 8, *[FORMULAS] * 3, st.text(), REPEATED)
ANSWERS = st.one_of(*[FORMULAS] * 3, MIXTURES)
