import doctest

from harness import scripted


def test_the_example_of_the_scripted_model_works() -> None:
    assert doctest.testmod(scripted) == (0, 9)
