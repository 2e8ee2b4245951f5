SELECT p.age, s.ward FROM stays /* a */ AS s JOIN patients AS p USING /* b */ ( /* c */ "id" )
