"""Excel workbooks in XML of 2003."""

SPACE = "urn:schemas-microsoft-com:office:spreadsheet"


def workbook(rows: str, prolog: str = "") -> bytes:
    return (
        f'<?xml version="1.0"?>{prolog}<?mso-application progid="Excel.Sheet"?>'
        f'<Workbook xmlns="{SPACE}" xmlns:ss="{SPACE}"><Worksheet ss:Name="S"><Table>{rows}'
        "</Table></Worksheet></Workbook>"
    ).encode()
