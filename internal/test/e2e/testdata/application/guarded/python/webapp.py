from fastapi import FastAPI, Request

app = FastAPI()


@app.get("/me")
async def me(request: Request):
    return {"user": request.user.identity, "scopes": [scope for scope in request.auth.scopes if scope != "authenticated"]}
