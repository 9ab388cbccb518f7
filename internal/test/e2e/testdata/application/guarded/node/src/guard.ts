import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

export const auth = new Auth()
  .authenticate(async (request: Request) => {
    const name = request.headers.get("authorization")?.replace("Bearer ", "") ?? "";
    switch (name) {
      case "ada":
      case "bob":
        return { identity: name, permissions: ["runs"], role: "author" };
      case "throws":
        throw new Error("the database password is hunter2");
      case "hangs":
        return new Promise<never>(() => {});
      case "nonsense":
        return 7 as never;
      case "late":
        throw new HTTPException(403, { message: "The token is old." });
    }
    throw new HTTPException(401, { message: "Who are you?" });
  })
  .on("*", ({ value, user }) => {
    if ("metadata" in value) value.metadata = { ...value.metadata, owner: user.identity };
    return { owner: user.identity };
  })
  .on("threads:search", ({ value, user }) => {
    if (value.metadata?.readers) return { readers: { $contains: user.identity } };
    return { owner: { $eq: user.identity } };
  })
  .on("assistants:read", () => true)
  .on("assistants:delete", () => false)
  .on("crons:search", () => {
    throw new Error("the database password is hunter2");
  })
  .on("store", ({ value, user }) => {
    value.namespace = [user.identity, ...(value.namespace ?? [])];
  });
