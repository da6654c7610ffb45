#!/usr/bin/env bash
# Creates the database and the two users of a production setup, on a server that you administer:
#
#   deploy/make-databases.sh postgres [options for psql to connect as an administrator]
#   deploy/make-databases.sh mysql    [options for mysql to connect as an administrator; MySQL 8.0+, MariaDB 10.6+]
#
#   deploy/make-databases.sh postgres --host db.example --username postgres
#
# The owner owns the tables and runs `weir migrate`; the service's user reads and writes rows, but
# cannot create, alter or drop anything. Names and passwords come from the environment:
#
#   WEIR_DB=weir   WEIR_DB_OWNER=weir_owner   WEIR_DB_USER=weir
#   WEIR_DB_OWNER_PASSWORD, WEIR_DB_PASSWORD   generated and printed if a new user has none
#   WEIR_DB_FROM=%   MySQL: where the users may connect from
#
# Safe to repeat: existing objects stay, and a given password is set.
set -euo pipefail

fail() {
  echo "make-databases.sh: $1" >&2
  exit 2
}

kind=${1:-}
case $kind in
  postgres | mysql) shift ;;
  *) fail "give postgres or mysql, then the options of its client; the head of this file explains it" ;;
esac
database=${WEIR_DB:-weir} owner=${WEIR_DB_OWNER:-weir_owner} user=${WEIR_DB_USER:-weir} from=${WEIR_DB_FROM:-%}
for name in "$database" "$owner" "$user"; do
  [[ $name =~ ^[a-z_][a-z0-9_]{0,30}$ ]] || fail "invalid name '$name': lower-case letters, digits and _, at most 31"
done
[[ $from =~ ^[A-Za-z0-9.:%_/-]+$ ]] || fail "invalid WEIR_DB_FROM '$from'"
[ "$owner" != "$user" ] || fail "the owner and the service's user must differ"

# An SQL string literal. MySQL also interprets backslashes.
quoted() {
  local text=${1//\'/\'\'}
  [ "$kind" = postgres ] || text=${text//\\/\\\\}
  printf "'%s'" "$text"
}

made_up() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

# ask SQL: prints one value. Passwords are passed only on standard input, so that no process list shows them.
ask() {
  if [ "$kind" = postgres ]; then
    psql --no-psqlrc --quiet --tuples-only --no-align --dbname postgres "${client[@]}" <<<"$1"
  else
    "$mysql" --batch --skip-column-names "${client[@]}" <<<"$1"
  fi
}

exists() { # USER
  if [ "$kind" = postgres ]; then
    [ "$(ask "SELECT 1 FROM pg_roles WHERE rolname = $(quoted "$1");")" = 1 ]
  else
    [ "$(ask "SELECT 1 FROM mysql.user WHERE user = $(quoted "$1") AND host = $(quoted "$from");")" = 1 ]
  fi
}

client=("$@")
mysql=mysql
command -v mysql >/dev/null || mysql=mariadb # newer packages of MariaDB only have this name
told=()
# Sets `password` to the user's new password, empty if the user keeps the current one.
choose_password() { # USER GIVEN
  password=$2
  if [ -z "$password" ] && ! exists "$1"; then
    password=$(made_up)
    told+=("$1: $password")
  fi
}
choose_password "$owner" "${WEIR_DB_OWNER_PASSWORD:-}"
owner_password=$password
choose_password "$user" "${WEIR_DB_PASSWORD:-}"
user_password=$password

postgres_user() { # USER PASSWORD
  echo "SELECT 'CREATE ROLE $1 LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '$1') \\gexec"
  [ -z "$2" ] || echo "ALTER ROLE $1 PASSWORD $(quoted "$2");"
}

make_postgres() {
  postgres_user "$owner" "$owner_password"
  postgres_user "$user" "$user_password"
  cat <<SQL
GRANT $owner TO CURRENT_USER;
SELECT 'CREATE DATABASE $database OWNER $owner' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '$database') \\gexec
\\connect $database
REVOKE ALL ON DATABASE $database FROM PUBLIC;
GRANT CONNECT ON DATABASE $database TO $user;
ALTER SCHEMA public OWNER TO $owner;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO $user;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO $user;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO $user;
ALTER DEFAULT PRIVILEGES FOR ROLE $owner IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO $user;
ALTER DEFAULT PRIVILEGES FOR ROLE $owner IN SCHEMA public GRANT USAGE ON SEQUENCES TO $user;
SQL
}

mysql_user() { # USER PASSWORD
  local account
  account="$(quoted "$1")@$(quoted "$from")"
  [ -z "$2" ] || cat <<SQL
CREATE USER IF NOT EXISTS $account IDENTIFIED BY $(quoted "$2");
ALTER USER $account IDENTIFIED BY $(quoted "$2");
SQL
}

# In GRANT `_` matches any character, except on servers with partial_revokes, where it is literal.
mysql_pattern() {
  if [[ $(ask "SHOW GLOBAL VARIABLES LIKE 'partial_revokes';") == *ON ]]; then
    echo "$database"
  else
    echo "${database//_/\\_}"
  fi
}

make_mysql() {
  local pattern
  pattern=$(mysql_pattern)
  echo "CREATE DATABASE IF NOT EXISTS $database CHARACTER SET utf8mb4;"
  mysql_user "$owner" "$owner_password"
  mysql_user "$user" "$user_password"
  cat <<SQL
GRANT ALL PRIVILEGES ON \`$pattern\`.* TO $(quoted "$owner")@$(quoted "$from");
GRANT SELECT, INSERT, UPDATE, DELETE ON \`$pattern\`.* TO $(quoted "$user")@$(quoted "$from");
SQL
}

if [ "$kind" = postgres ]; then
  make_postgres | psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --dbname postgres "${client[@]}" >/dev/null
else
  make_mysql | "$mysql" "${client[@]}"
fi

echo "made: database $database, owner $owner, user $user"
for line in ${told[@]+"${told[@]}"}; do echo "password of $line"; done
cat <<TEXT
next: weir migrate --store $kind://$owner:PASSWORD@HOST/$database
      weir serve --store $kind://$user:PASSWORD@HOST/$database --store-migrate false
TEXT
