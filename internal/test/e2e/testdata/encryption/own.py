"""Encrypts under a key for each tenant. Tenants with certain names make it fail. Texts with the
same last word are similar."""

import asyncio
import base64
import hashlib
import json
import os
from itertools import count

from langgraph_sdk import Encryption, EncryptionContext

encryption = Encryption()
PREFIX = "enc:"
KEPT = {"owner"}


def tenant(ctx: EncryptionContext) -> bytes:
    name = ctx.metadata.get("tenant", "")
    if not name.startswith("tenant-"):
        raise ValueError(f"unknown tenant {name!r}")
    return name.encode()


def stream(key: bytes, data: bytes) -> bytes:
    pads = (hashlib.sha256(key + number.to_bytes(8, "big")).digest() for number in count())
    pad = b"".join(next(pads) for _ in range(len(data) // 32 + 1))
    return bytes(a ^ b for a, b in zip(data, pad))


def seal(key: bytes, data: bytes) -> bytes:
    nonce = os.urandom(16)
    return nonce + hashlib.sha256(key + nonce + data).digest() + stream(key + nonce, data)


def unseal(key: bytes, sealed: bytes) -> bytes:
    nonce, digest = sealed[:16], sealed[16:48]
    data = stream(key + nonce, sealed[48:])
    if hashlib.sha256(key + nonce + data).digest() != digest:
        raise ValueError("the data were encrypted for another tenant, or changed")
    return data


async def trouble(ctx: EncryptionContext, encrypts: bool) -> object:
    """Fails as the tenant's name says."""
    match ctx.metadata.get("tenant"), encrypts:
        case ("tenant-throws", True) | ("tenant-is-lost", False):
            raise RuntimeError("hunter2")
        case ("tenant-hangs", True) | ("tenant-stalls", False):
            await asyncio.sleep(60)
        case "tenant-nonsense", True:
            return "nonsense"
    return None


@encryption.encrypt.blob
async def encrypt_blob(ctx: EncryptionContext, blob: bytes) -> bytes:
    return await trouble(ctx, True) or seal(tenant(ctx), blob)


@encryption.decrypt.blob
async def decrypt_blob(ctx: EncryptionContext, blob: bytes) -> bytes:
    return await trouble(ctx, False) or unseal(tenant(ctx), blob)


@encryption.encrypt.json
async def encrypt_json(ctx: EncryptionContext, data: dict) -> dict:
    def made(value: object) -> str:
        return PREFIX + base64.b64encode(seal(tenant(ctx), json.dumps(value).encode())).decode()

    return await trouble(ctx, True) or {key: value if key in KEPT else made(value) for key, value in data.items()}


@encryption.decrypt.json
async def decrypt_json(ctx: EncryptionContext, data: dict) -> dict:
    def found(value: object) -> object:
        is_sealed = isinstance(value, str) and value.startswith(PREFIX)
        return json.loads(unseal(tenant(ctx), base64.b64decode(value.removeprefix(PREFIX)))) if is_sealed else value

    return await trouble(ctx, False) or {key: found(value) for key, value in data.items()}


def embed(texts: list[str]) -> list[list[float]]:
    return [[0.5, -0.5, 0.5, 0.5] if text.endswith("changed") else [0.5, 0.5, -0.5, 0.5] for text in texts]
