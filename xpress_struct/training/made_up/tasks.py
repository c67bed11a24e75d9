"""Programming tasks put together from parts, in the manner of basic exercises: so many that few repeat."""

from __future__ import annotations

import random
import re

from xpress_struct.training.prompts import TrainPrompt
from xpress_struct.training.split import group_of

__all__ = ["task_prompt"]

# What a name in braces may stand for, with "|" between.
_PARTS = {
    "task": (
        "find the {fold} of {which} {things} in {a} {container}|"
        "find the {fold} of {which} {things} in {a} {container}{means}|"
        "find the {rank} {thing} in {a} {container}|"
        "find the {rank} {thing} of {which} {things} in {a} {container}|"
        "count {which} {things} in {a} {container}|"
        "count the {symbols} in {a} string|"
        "count how often each {thing} occurs in {a} {container}|"
        "count the number of {properties} numbers from 1 to n|"
        "remove {which} {things} from {a} {container}{means}|"
        "remove all {symbols} from {a} string{regex}|"
        "remove the {rank} {thing} from {a} {container}|"
        "replace all {symbols} with {symbols} in {a} string{regex}|"
        "extract {which} {things} from {a} {container}{means}|"
        "extract the {symbols} from {a} string{regex}|"
        "sort {a} {container} {order}{means}|"
        "sort {a} list using {sorting} sort|"
        "check whether {a} {container} {holds}|"
        "check whether {a} string {written}{regex}|"
        "check whether {a} number is {property} or not|"
        "check if all {things} of {a} {container} are {property}|"
        "convert {form} to {form}|"
        "convert {a} {unit} to {unit}|"
        "find the nth {sequence} number|"
        "find the first n {sequence} numbers|"
        "find {series} up to n|"
        "calculate the {measure} of a {shape}|"
        "find the {relation} of two {pairs}|"
        "find the {relation} of two {pairs}{means}|"
        "{join} two {pairs}{means}|"
        "merge {two} {mappings}|"
        "sum the values of {a} dictionary whose keys are {keyed}|"
        "filter {a} dictionary by {filtering}|"
        "group the {things} of {a} {container} by {grouping}|"
        "rotate {a} {container} to the {side} by k places|"
        "reverse the {reversed} of {a} string|"
        "split {a} {container} into {split}|"
        "find the {substring} of {a} string|"
        "find the index of the {rank} {thing} in {a} sorted {container}|"
        "search for a {thing} in {a} {container} using {searching} search|"
        "find the number of ways to {ways}|"
        "generate {generated}|"
        "{bits} of {a} number"
    ),
    "a": "a|a|the given|a given",
    "two": "two|three|several",
    "container": "list|list|array|tuple|matrix|nested list|list of tuples|list of lists",
    "thing": "element|number|item|value|word",
    "things": "elements|numbers|items|values",
    "which": (
        "all|all|the even|the odd|the positive|the negative|the prime|the unique|the repeated|"
        "the first k|the last k|the adjacent|the non-zero|the square"
    ),
    "fold": (
        "sum|product|average|maximum|minimum|range|median|mode|sum of squares|sum of cubes|"
        "greatest common divisor|least common multiple|frequency|difference"
    ),
    "rank": (
        "largest|smallest|second largest|k-th largest|k-th smallest|first repeated|first non-repeated|"
        "most common|least common|last|missing|middle"
    ),
    "symbols": (
        "vowels|consonants|digits|upper case letters|lower case letters|special characters|words|"
        "punctuation marks|duplicate characters|parentheses|tabs"
    ),
    "property": (
        "even|odd|prime|perfect|a perfect square|a power of two|a palindrome|divisible by 11|"
        "an Armstrong number|a happy number|positive|abundant|a cube"
    ),
    "properties": (
        "even|odd|prime|perfect|square|abundant|palindromic|composite|triangular|ugly|happy|Armstrong"
    ),
    "order": (
        "in descending order|in ascending order|by the last element|by the second element|by length|"
        "by frequency|by absolute value|by the sum of digits|alphabetically"
    ),
    "sorting": "bubble|insertion|selection|merge|quick|counting|heap|shell|radix",
    "searching": "linear|binary|interpolation|jump|ternary",
    "holds": (
        "is sorted|is empty|has duplicates|contains a given element|is symmetric|"
        "contains only distinct elements|is monotonic|is a subset of another one|has a pair with sum k"
    ),
    "written": (
        "starts with a vowel|ends with a digit|is a valid email address|is a palindrome|"
        "contains only digits|has balanced brackets|is an anagram of another string|is in upper case|"
        "is a valid IP address|contains consecutive letters|has all letters of the alphabet"
    ),
    "form": (
        "a list|a tuple|a dictionary|a string|a set|a binary number|a decimal number|"
        "a list of characters|a comma-separated string|a Roman numeral|an octal number|an integer|"
        "snake case|camel case|a list of pairs|a hexadecimal number"
    ),
    "unit": (
        "temperature in Celsius|temperature in Fahrenheit|distance in miles|time in seconds|"
        "distance in kilometers|angle in degrees|angle in radians|weight in pounds|time in hours"
    ),
    "sequence": (
        "Fibonacci|Catalan|Lucas|triangular|pentagonal|hexagonal|Bell|Pell|prime|tetrahedral|octagonal|"
        "Jacobsthal|Tribonacci|square pyramidal|harmonic"
    ),
    "series": (
        "the sum of even numbers|the sum of odd squares|all prime numbers|all perfect squares|"
        "the sum of cubes|the harmonic sum|the sum of prime numbers|all multiples of 3 and 5"
    ),
    "measure": "area|perimeter|volume|surface area|diagonal|lateral surface area",
    "shape": (
        "circle|square|rectangle|triangle|cube|cuboid|sphere|cylinder|cone|rhombus|trapezium|octagon|"
        "parallelogram|pyramid|torus|hexagon"
    ),
    "relation": (
        "difference|sum|product|intersection|union|maximum|dot product|greatest common divisor|"
        "least common multiple|Hamming distance|common elements"
    ),
    "pairs": "lists|numbers|tuples|strings|sets|matrices|dictionaries|sorted lists",
    "join": "multiply|add|subtract|concatenate|interleave|compare|swap|zip|merge",
    "mappings": "sorted lists|strings|tuples|sets|linked lists",
    "keyed": "strings|even numbers|in a list|vowels|longer than k",
    "filtering": "value|key|the length of its keys|a minimum value|a list of keys",
    "grouping": "length|first letter|parity|sign|the remainder by 3|type|first element",
    "side": "left|right",
    "reversed": "letters|vowels|order of the words|digits|case",
    "split": "k parts|pieces of size n|even and odd elements|two halves|positive and negative ones",
    "substring": (
        "longest word|longest palindrome|first repeated character|length|last word|"
        "longest substring without repeated characters|shortest word|most frequent character|vowels"
    ),
    "ways": (
        "climb n stairs|make change for an amount|arrange n letters|choose k of n items|"
        "fill a board with dominoes|reach the end of a grid|split a string into words"
    ),
    "generated": (
        "all permutations of a list|all subsets of a set|Pascal's triangle|a random password|"
        "a matrix of size n by n|all combinations of k items|a list of random numbers|"
        "n pairs of brackets|a square matrix filled with 1 to n|all substrings of a string|"
        "a multiplication table"
    ),
    "bits": (
        "count the set bits|toggle the last bits|find the first set bit|reverse the bits|"
        "find the parity|clear the leftmost set bit|find the digits|sum the digits|count the digits"
    ),
    "means": (
        "|| using lambda function| using list comprehension| using recursion| using map|"
        " without using a loop| by using the filter function| using a dictionary| using itertools"
    ),
    "regex": "|| by using regex| using regular expressions",
}
_ASKS = (
    ("Write a function to {task}.", 5),
    ("Write a python function to {task}.", 4),
    ('Complete this code:\n\ndef {name}({arguments}):\n    """ {Task}.\n    """\n', 2),
    ("Write a Python function `{name}({arguments})` to {task}.", 1),
    ("{Task} in Python.", 1),
)
_ARGUMENTS = (
    ("string", "text"),
    ("number", "n"),
    ("dictionary", "d"),
    ("matrix", "matrix"),
    ("tuple", "tup"),
)
_SKIPPED = {
    "a",
    "an",
    "the",
    "of",
    "in",
    "to",
    "and",
    "or",
    "by",
    "given",
    "is",
    "with",
    "from",
    "using",
    "all",
}


def task_prompt(rng: random.Random, name: str) -> TrainPrompt:
    """One task; it is held out by its words, whatever the way it is asked."""
    task = "{task}"
    while "{" in task:
        task = re.sub(r"\{(\w+)\}", lambda part: rng.choice(_PARTS[part[1]].split("|")), task, count=1)
    words = [word for word in re.findall(r"[a-z0-9]+", task.lower()) if word not in _SKIPPED]
    arguments = next((argument for word, argument in _ARGUMENTS if word in task), "items")
    if "two" in words:
        arguments = "a, b"
    ask = rng.choices([ask for ask, _ in _ASKS], [share for _, share in _ASKS])[0]
    text = ask.format(
        task=task, Task=task[0].upper() + task[1:], name="_".join(words[:4]), arguments=arguments
    )
    return TrainPrompt(name, "code", text, None, group_of(f"task {task}"))
