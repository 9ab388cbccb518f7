
// The document stands beside the page. The extensions show the permission that each operation
// takes.
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  showExtensions: true,
  validatorUrl: null,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  syntaxHighlight: { theme: "obsidian" },
  // The library gives the choice of the server no name.
  onComplete: () => document.getElementById("servers")?.setAttribute("aria-label", "Server"),
});
