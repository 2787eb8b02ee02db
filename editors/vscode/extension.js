// Starts `whyfor lsp` and lets it answer: hover, code lenses, and the command that opens a
// conversation come from the server.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function activate() {
  const command = workspace.getConfiguration("whyfor").get("command", "whyfor");
  const server = { command, args: ["lsp"] };
  const options = { documentSelector: [{ scheme: "file" }] };
  client = new LanguageClient("whyfor", "Whyfor", server, options);
  return client.start();
}

function deactivate() {
  return client ? client.stop() : undefined;
}

module.exports = { activate, deactivate };
