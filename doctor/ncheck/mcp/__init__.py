"""`ncheck mcp`: what an assistant may ask of ncheck, by the Model Context Protocol. It only reads."""
