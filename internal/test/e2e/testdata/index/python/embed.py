"""Bags of words: texts are similar if they have words in common."""

import hashlib


def embed(texts: list[str]) -> list[list[float]]:
    return [bag(text) for text in texts]


def bag(text: str) -> list[float]:
    if "unreadable" in text:
        raise ValueError("this text cannot be embedded")
    counts = [0.0] * 256
    for word in text.lower().split():
        counts[hashlib.sha256(word.encode()).digest()[0]] += 1
    return counts
