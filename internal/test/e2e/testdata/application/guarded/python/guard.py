import asyncio

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def who(authorization: str | None, headers: dict):
    name = (authorization or "").removeprefix("Bearer ")
    match name:
        case "ada" | "bob":
            return {"identity": name, "permissions": ["runs"], "role": "author"}
        case "throws":
            raise RuntimeError("the database password is hunter2")
        case "hangs":
            await asyncio.sleep(3600)
        case "nonsense":
            return 7
        case "late":
            raise Auth.exceptions.HTTPException(status_code=403, detail="The token is old.")
    raise Auth.exceptions.HTTPException(status_code=401, detail="Who are you?")


@auth.on
async def own(ctx, value):
    if "metadata" in value:
        value["metadata"] = {**(value["metadata"] or {}), "owner": ctx.user.identity}
    return {"owner": ctx.user.identity}


@auth.on.threads.search
async def search(ctx, value):
    if (value.get("metadata") or {}).get("readers"):
        return {"readers": {"$contains": ctx.user.identity}}
    return {"owner": {"$eq": ctx.user.identity}}


@auth.on.assistants.read
async def everyones(ctx, value):
    return True


@auth.on.assistants.delete
async def nobody(ctx, value):
    return False


@auth.on.crons.search
async def mistake(ctx, value):
    raise RuntimeError("the database password is hunter2")


@auth.on.store
async def scope(ctx, value):
    value["namespace"] = (ctx.user.identity, *(value["namespace"] or ()))
