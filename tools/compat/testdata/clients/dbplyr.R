# R: DBI with RPostgreSQL, and dbplyr's verbs.
suppressPackageStartupMessages({
  library(DBI)
  library(RPostgreSQL)
  library(dplyr)
})
cat(sprintf("version\tRPostgreSQL %s, dbplyr %s\n", packageVersion("RPostgreSQL"), packageVersion("dbplyr")))
db <- dbConnect(PostgreSQL(), host = Sys.getenv("PGHOST"), port = as.integer(Sys.getenv("PGPORT")),
                dbname = Sys.getenv("PGDATABASE"), user = Sys.getenv("PGUSER"), password = Sys.getenv("PGPASSWORD"))

# field writes values of R's own types as PostgreSQL does.
field <- function(x) {
  text <- if (inherits(x, "POSIXct")) format(x, "%Y-%m-%d %H:%M:%S", tz = "UTC")
    else if (inherits(x, "Date")) format(x, "%Y-%m-%d")
    else if (is.logical(x)) ifelse(x, "t", "f")
    else if (is.numeric(x)) format(x, digits = 15, trim = TRUE, scientific = FALSE)
    else as.character(x)
  ifelse(is.na(x), "NULL", text)
}
show <- function(probe, frame) {
  if (nrow(frame) > 0) cat(paste(probe, do.call(paste, c(lapply(frame, field), sep = "\t")), sep = "\t"), sep = "\n")
}

every <- dbGetQuery(db, "SELECT age, height, weight, born, member, sex, zip, visits, cost, score, admitted, consents, diagnosis FROM people")
asked <- dbSendQuery(db, "SELECT * FROM people")
columns <- dbColumnInfo(asked)
invisible(dbClearResult(asked))
kinds <- c(INTEGER = "integer", INT4 = "integer", SMALLINT = "smallint", INT2 = "smallint", BIGINT = "bigint", INT8 = "bigint",
           DECIMAL = "numeric", NUMERIC = "numeric", FLOAT8 = "double precision", BOOL = "boolean", TEXT = "text", DATE = "date",
           TIMESTAMP = "timestamp")
types <- kinds[toupper(as.character(columns$type))]
types[is.na(types)] <- as.character(columns$type)[is.na(types)]
show("types", data.frame(columns$name, types))
show("rows", every)

people <- tbl(db, "people")
show("filter", people %>% filter(age >= 65, sex == "female") %>% select(age, zip) %>% collect())
show("groups", people %>% group_by(sex) %>%
  summarise(n = n(), years = sum(age, na.rm = TRUE), first = min(born, na.rm = TRUE), most = max(cost, na.rm = TRUE)) %>% collect())
show("join", people %>% left_join(tbl(db, "postcodes"), by = "zip") %>% count(city) %>% collect())
invisible(dbDisconnect(db))
