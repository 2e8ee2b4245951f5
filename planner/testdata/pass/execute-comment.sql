/* x */ EXECUTE /* y */ by_age /* z */ (1 + 2);
