BEGIN TRANSACTION;
CREATE TABLE attempts(
  run INTEGER NOT NULL, step TEXT NOT NULL, n INTEGER NOT NULL, state TEXT NOT NULL, intent TEXT,
  reason TEXT, message TEXT, code INTEGER, signal INTEGER, placed TEXT NOT NULL DEFAULT '{}',
  started REAL NOT NULL, ended REAL,
  PRIMARY KEY(run, step, n)
);
INSERT INTO "attempts" VALUES(1,'make',1,'ENDED',NULL,'exit_code','make: ended with code 0',0,NULL,'{"ports": {}, "devices": []}',1.79613689932349562643e+09,1.79613689946082520478e+09);
INSERT INTO "attempts" VALUES(1,'use',1,'ENDED',NULL,'exit_code','use: ended with code 0',0,NULL,'{"ports": {}, "devices": []}',1.79613689946261310577e+09,1.79613689958748459817e+09);
INSERT INTO "attempts" VALUES(2,'fails',1,'ENDED',NULL,'exit_code','fails: ended with code 9',9,NULL,'{"ports": {}, "devices": []}',1.79613690034681987763e+09,1.79613690047105312346e+09);
INSERT INTO "attempts" VALUES(2,'fails',2,'ENDED',NULL,'exit_code','fails: ended with code 9',9,NULL,'{"ports": {}, "devices": []}',1.79613690057273864743e+09,1.7961369006985707283e+09);
INSERT INTO "attempts" VALUES(3,'first',1,'ENDED',NULL,'exit_code','first: ended with code 0',0,NULL,'{"ports": {}, "devices": []}',1.79613690144052100183e+09,1.79613690158531117443e+09);
INSERT INTO "attempts" VALUES(3,'second',1,'RUNNING',NULL,NULL,NULL,NULL,NULL,'{"ports": {}, "devices": []}',1.79613690158729910843e+09,NULL);
CREATE TABLE leases(
  resource TEXT PRIMARY KEY,  -- port:8000, npu:3
  token INTEGER NOT NULL, run INTEGER NOT NULL, step TEXT NOT NULL
);
CREATE TABLE runs(
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, file TEXT NOT NULL,
  state TEXT NOT NULL,  -- NEW until its folder is written, then what its steps say
  created REAL NOT NULL, ended REAL, stop INTEGER NOT NULL DEFAULT 0
);
INSERT INTO "runs" VALUES(1,'pipe','/home/me/job/pipe.yaml','SUCCEEDED',1.79613689929144787786e+09,1.7961368995878019333e+09,0);
INSERT INTO "runs" VALUES(2,'fails','/home/me/job/fails.yaml','FAILED',1.7961369003177170753e+09,1.79613690069896674156e+09,0);
INSERT INTO "runs" VALUES(3,'open','/home/me/job/open.yaml','RUNNING',1.79613690140980887411e+09,NULL,0);
CREATE TABLE steps(
  run INTEGER NOT NULL, name TEXT NOT NULL, idx INTEGER NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
  reason TEXT, message TEXT, code INTEGER, signal INTEGER, why TEXT, outputs TEXT NOT NULL DEFAULT '{}',
  started REAL, ended REAL, retry_at REAL,
  PRIMARY KEY(run, name)
);
INSERT INTO "steps" VALUES(1,'make',0,'command','SUCCEEDED','exit_code','make: ended with code 0',0,NULL,NULL,'{"output_dir": "@HOME@/runs/000001/steps/make/output"}',1.79613689932349562643e+09,1.79613689946106910703e+09,NULL);
INSERT INTO "steps" VALUES(1,'use',1,'command','SUCCEEDED','exit_code','use: ended with code 0',0,NULL,NULL,'{"output_dir": "@HOME@/runs/000001/steps/use/output"}',1.79613689946261310577e+09,1.79613689958772015575e+09,NULL);
INSERT INTO "steps" VALUES(2,'fails',0,'command','FAILED','exit_code','fails: ended with code 9',9,NULL,NULL,'{"output_dir": "@HOME@/runs/000002/steps/fails/output"}',1.79613690034681987763e+09,1.79613690069881534574e+09,1.79613690057135391231e+09);
INSERT INTO "steps" VALUES(3,'first',0,'command','SUCCEEDED','exit_code','first: ended with code 0',0,NULL,NULL,'{"output_dir": "@HOME@/runs/000003/steps/first/output"}',1.79613690144052100183e+09,1.79613690158563256262e+09,NULL);
INSERT INTO "steps" VALUES(3,'second',1,'command','ACTIVE',NULL,NULL,NULL,NULL,NULL,'{}',1.79613690158729910843e+09,NULL,NULL);
INSERT INTO "steps" VALUES(3,'third',2,'command','WAITING',NULL,NULL,NULL,NULL,'step ''second'' is not done','{}',NULL,NULL,NULL);
CREATE TABLE tokens(next INTEGER NOT NULL);
INSERT INTO "tokens" VALUES(1);
CREATE INDEX open_runs ON runs(state) WHERE ended IS NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('runs',3);
PRAGMA user_version = 1;
COMMIT;
