"""The built-in tools.

Importing the package imports no tool: `search_fallback` also runs as a program
in a child process. Reading order:

- `tool`: the `@tool` decorator, argument checks and limits of output
- `registry`: the list of tools, and `ToolBox`, which runs them
- `workspace`: safe access to the files of the workspace
- `protected_paths`: the files of Larkspur itself, which no tool opens
- `instruction_trust`: instruction files that commands wrote
- `instruction_files`: the instructions of the owner and of a folder
- `filesystem`: read_file, write_file, edit_file, list_dir
- `document_files`: documents and pictures in read_file
- `diffs`: previews of file changes
- `similar_text`: text that resembles the text that edit_file is to replace
- `search`, `search_globs`, `search_matches`: search_files
- `search_fallback`: its engine without ripgrep
- `share_file`: share_file
- `shell`: shell
- `web_fetch`, `web_pages`, `http_client`, `http_urls`: web_fetch
- `web_search`: web_search and its providers
"""
