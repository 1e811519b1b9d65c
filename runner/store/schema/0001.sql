CREATE TABLE runs(
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, file TEXT NOT NULL,
  state TEXT NOT NULL,  -- NEW until its folder is written, then what its steps say
  created REAL NOT NULL, ended REAL, stop INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE steps(
  run INTEGER NOT NULL, name TEXT NOT NULL, idx INTEGER NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
  reason TEXT, message TEXT, code INTEGER, signal INTEGER, why TEXT, outputs TEXT NOT NULL DEFAULT '{}',
  started REAL, ended REAL, retry_at REAL,
  PRIMARY KEY(run, name)
);
CREATE TABLE attempts(
  run INTEGER NOT NULL, step TEXT NOT NULL, n INTEGER NOT NULL, state TEXT NOT NULL, intent TEXT,
  reason TEXT, message TEXT, code INTEGER, signal INTEGER, placed TEXT NOT NULL DEFAULT '{}',
  started REAL NOT NULL, ended REAL,
  PRIMARY KEY(run, step, n)
);
CREATE TABLE leases(
  resource TEXT PRIMARY KEY,  -- port:8000, npu:3
  token INTEGER NOT NULL, run INTEGER NOT NULL, step TEXT NOT NULL
);
CREATE TABLE tokens(next INTEGER NOT NULL);
INSERT INTO tokens VALUES (1);
CREATE INDEX open_runs ON runs(state) WHERE ended IS NULL;
PRAGMA user_version = 1;
