"""Small functions to be written."""

from __future__ import annotations

import random

from xpress_struct.training.prompts import TrainPrompt
from xpress_struct.training.split import group_of

__all__ = ["code_prompt"]

# name, arguments, what it does
_TASKS = (
    ("sum_of_evens", "numbers", "return the sum of the even numbers in a list"),
    ("count_vowels", "text", "count the vowels in a string"),
    ("reverse_words", "sentence", "reverse the order of the words in a sentence"),
    ("is_palindrome", "text", "check whether a string reads the same in both directions"),
    ("factorial", "n", "compute the factorial of a number"),
    ("fibonacci", "n", "return the first n Fibonacci numbers"),
    ("is_prime", "n", "check whether a number is prime"),
    ("gcd", "a, b", "compute the greatest common divisor of two numbers"),
    ("flatten", "nested", "flatten a list of lists"),
    ("unique", "items", "remove duplicates from a list and keep the order"),
    ("word_counts", "text", "count how often each word occurs in a text"),
    ("max_difference", "numbers", "find the largest difference between two numbers of a list"),
    ("merge_sorted", "a, b", "merge two sorted lists into one sorted list"),
    ("binary_search", "items, wanted", "find the index of a value in a sorted list"),
    ("transpose", "matrix", "transpose a matrix given as a list of rows"),
    ("celsius_to_fahrenheit", "celsius", "convert a temperature from Celsius to Fahrenheit"),
    ("common_elements", "a, b", "return the elements that two lists have in common"),
    ("second_largest", "numbers", "find the second largest number of a list"),
    ("rotate", "items, steps", "rotate a list to the right by a number of steps"),
    ("digits_sum", "n", "compute the sum of the digits of a number"),
    ("is_anagram", "first, second", "check whether two words are anagrams"),
    ("chunks", "items, size", "split a list into pieces of a given size"),
    ("running_total", "numbers", "return the running totals of a list of numbers"),
    ("capitalize_words", "text", "capitalize the first letter of each word"),
    ("median", "numbers", "compute the median of a list of numbers"),
    ("power_of_two", "n", "check whether a number is a power of two"),
    ("longest_word", "sentence", "find the longest word in a sentence"),
    ("remove_vowels", "text", "remove all vowels from a string"),
    ("invert", "mapping", "swap the keys and the values of a dictionary"),
    ("bubble_sort", "items", "sort a list with bubble sort"),
    ("matrix_multiply", "a, b", "multiply two matrices"),
    ("to_binary", "n", "convert a number to its binary digits"),
    ("caesar", "text, shift", "shift each letter of a text by a number of places"),
    ("leap_year", "year", "check whether a year is a leap year"),
    ("group_by_length", "words", "group words by their length"),
    ("average", "numbers", "compute the average of a list of numbers"),
    ("count_words", "path", "count the words of a text file"),
    ("read_csv", "path", "read a CSV file into a list of dictionaries"),
    ("most_common", "items", "return the most common element of a list"),
    ("balanced", "text", "check whether the brackets in a text are balanced"),
    ("circle_area", "radius", "compute the area of a circle"),
    ("multiples", "n, limit", "list all multiples of a number up to a limit"),
    ("zip_to_dict", "keys, values", "make a dictionary from a list of keys and a list of values"),
    ("deep_copy", "value", "copy nested lists and dictionaries"),
    ("distance", "p, q", "compute the distance between two points"),
    ("split_name", "full_name", "split a full name into first and last name"),
)
_ASKS = (
    "Write a Python function {name}({arguments}) to {task}.",
    "Write a function to {task}.",
    "Write a Python function that can {task}. Include a docstring.",
    'Complete this function:\n\ndef {name}({arguments}):\n    """{Task}."""',
    "Give me only the code, no explanation: a Python function `{name}` to {task}.",
    "Write a Python class with a method {name}({arguments}) to {task}.",
    "Fix and finish this Python code:\n\ndef {name}({arguments}):\n    # {task}\n    pass",
    "Write a unit test for a Python function {name}({arguments}) that should {task}.",
)


def code_prompt(rng: random.Random, name: str) -> TrainPrompt:
    """One function."""
    function, arguments, task = rng.choice(_TASKS)
    Task = task[0].upper() + task[1:]  # noqa: N806  (the template's field)
    ask = rng.choice(_ASKS).format(name=function, arguments=arguments, task=task, Task=Task)
    return TrainPrompt(name, "code", ask, None, group_of(f"function {function}"))
