# client: Open WebUI
# registry: PyPI
# packages: open-webui==0.12.4
# door: chat
# untried: it installs torch and gigabytes of models; the requests that it makes (tools, titles, tags, history) are among the tests
