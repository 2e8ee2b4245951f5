SELECT count(*), 'é' FROM patients WHERE diagnosis IN ('fl' -- the first half
  -- more
'u', 'mea' /* no string goes on behind this */, E'go\x75' -- it's
't') AND zip <> 'x\y' -- a \ here
'\z' AND age > 1
