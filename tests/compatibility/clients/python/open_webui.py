# client: Open WebUI
# registry: PyPI
# packages: open-webui==0.12.4
# door: chat
# untried: it installs torch; the tests have requests as it makes them
