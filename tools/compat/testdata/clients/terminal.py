"""pgcli, a terminal: people who sit at it see labels. What it is typed comes from its standard input."""
import os
import subprocess
import tempfile

print("version", subprocess.check_output(["pgcli", "--version"], text=True).split()[1], sep="\t")
TYPED = r"""\T tsv
SELECT 'labels' AS probe, age, born, zip, diagnosis FROM people;
SELECT 'join' AS probe, city, count(*) FROM people LEFT JOIN postcodes USING (zip) GROUP BY city;
"""
with tempfile.TemporaryDirectory() as home:
    out = subprocess.run(["pgcli", "--less-chatty", "--row-limit", "0", "--no-password"], input=TYPED, text=True, check=True,
                         env={**os.environ, "HOME": home, "XDG_CONFIG_HOME": home}, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL).stdout
for line in out.splitlines():
    fields = line.split("\t")
    if fields[0] in ("labels", "join"):
        print(*("NULL" if field in ("<null>", "None") else field for field in fields), sep="\t")
