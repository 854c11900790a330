"""Text of documents, and pictures in a form that model providers accept.

Every file is read in a child process of its own, because parsers of hostile files can crash, loop
or be taken over. Importing the package imports no parser. Reading order:

- `reader`: `ChildDocumentReader`, which starts the child and checks its answer
- `kinds`: the kind of a file, by its content first
- `child`: the program of the child
- `confinement`: limits of the child: memory, time, files, network
- `extraction`: the text of a document as pieces, and selection of the requested part
- `plain_text`, `html_to_markdown`, `epub`, `mail`, `outlook`, `open_document`: one kind each
- `pdf`: pages; `pdf_annotations`: their form fields and comments
- `docx`: Word; `word_runs`, `word_numbers`: paragraphs; `word_chunks`: embedded web pages
- `pptx`: PowerPoint; `drawings`, `equations`: of all Office files
- `xlsx`, `xls`, `xlsb`, `xml_spreadsheet`: Excel; `sheets`, `number_formats`: of all workbooks
- `archives`: ZIP and tar, which are listed
- `package`: ZIP files that hold a document, and their XML
- `pictures`: size and scaling; `heif_pictures`: pictures of phones
"""
