CREATE TABLE weir_policy_state(
  one         smallint PRIMARY KEY CHECK (one = 1),
  changes     bigint NOT NULL,
  last_policy bigint NOT NULL,
  last_entry  bigint NOT NULL
);
INSERT INTO weir_policy_state VALUES (1, 0, 0, 0);
CREATE TABLE weir_policy(
  id             bigint PRIMARY KEY,
  policy_key     text     NOT NULL UNIQUE,
  type           text     NOT NULL,
  capacity       bigint   NOT NULL,
  refill_rate    bigint   NOT NULL,
  window_seconds bigint   NOT NULL,
  buckets        bigint   NOT NULL,
  domain         text     NOT NULL,
  has_match      smallint NOT NULL,
  shadow         smallint NOT NULL,
  unlimited      smallint NOT NULL,
  on_store_error text     NOT NULL,
  cost           bigint   NOT NULL,
  version        bigint   NOT NULL,
  created_at     bigint   NOT NULL,
  updated_at     bigint   NOT NULL,
  expires_at     bigint   NOT NULL
);
CREATE TABLE weir_policy_match(
  policy_id bigint  NOT NULL,
  position  integer NOT NULL,
  name      text    NOT NULL,
  value     text    NOT NULL,
  PRIMARY KEY (policy_id, position)
);
CREATE TABLE weir_audit(
  id           bigint PRIMARY KEY,
  at           bigint NOT NULL,
  who          text   NOT NULL,
  action       text   NOT NULL,
  target       text   NOT NULL,
  state_before text   NOT NULL,
  state_after  text   NOT NULL,
  undoes       bigint NOT NULL
);
CREATE INDEX weir_audit_target ON weir_audit (target, id);
COMMENT ON TABLE weir_policy IS 'Weir: policies made through the admin API; change them there';
COMMENT ON TABLE weir_audit IS 'Weir: every change through the admin API';
COMMENT ON TABLE weir_policy_state IS
  'Weir: one row; nodes read all policies anew when changes has moved';
