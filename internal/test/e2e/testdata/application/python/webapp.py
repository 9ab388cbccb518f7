import asyncio
from contextlib import asynccontextmanager
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from langgraph_sdk import get_client

@asynccontextmanager
async def lifespan(app):
    yield {"word": "started"}

app = FastAPI(lifespan=lifespan)

@app.post("/hello/{name}")
async def hello(name: str, request: Request):
    return {"name": name, "word": request.state.word, "key": request.headers.get("x-api-key"), "body": await request.json()}

@app.get("/counts")
async def counts():
    async def lines():
        for i in range(3):
            yield f"data: {i}\n\n"
            await asyncio.sleep(0.01)
    return StreamingResponse(lines(), media_type="text/event-stream")

async def echo(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    more = True
    while more:
        message = await receive()
        more = message.get("more_body", False)
        await send({"type": "http.response.body", "body": message.get("body", b""), "more_body": more})

app.mount("/echo", echo)

@app.get("/assistants/{name}/graph")
async def shadow(name: str):
    return {"mine": name}

@app.post("/calls")
async def calls():
    return {"assistants": [a["graph_id"] for a in await get_client().assistants.search()]}

@app.get("/large")
@app.get("/assistants/{name}/schemas")
async def large():
    async def parts():
        for _ in range(800):
            yield b"x" * 65536
    return StreamingResponse(parts(), media_type="application/octet-stream")
