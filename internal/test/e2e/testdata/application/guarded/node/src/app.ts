import { Hono } from "hono";

type Variables = { auth: { user: { identity: string }; scopes: string[] } };

export const app = new Hono<{ Variables: Variables }>();

app.get("/me", (c) => c.json({ user: c.get("auth").user.identity, scopes: c.get("auth").scopes }));
