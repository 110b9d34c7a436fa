"""What the report page was given."""

import base64
import json
import re
import zlib


def page_data(page):
    """Unpacks the data of a report page."""
    (packed,) = re.findall(r'id="data">([^<]*)<', page)
    return json.loads(zlib.decompress(base64.b64decode(packed)))
