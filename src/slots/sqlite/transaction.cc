#include "slots/sqlite/transaction.h"

#include <limits>
#include <map>
#include <string>

#include "slots/config.h"
#include "slots/sqlite/archive.h"
#include "slots/sqlite/configs.h"
#include "slots/sqlite/placer.h"
#include "slots/sqlite/sql.h"
#include "slots/timing.h"
#include "slots/window.h"

namespace weir::slots::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

PlaceRules RulesFor(const Config& config, std::string_view tenant_class) {
  PlaceRules rules{.size = config.window_size,
                   .max = config.max_per_window,
                   .headroom = config.headroom,
                   .fair_windows = config.fair_windows,
                   .shared = !config.tenants.empty(),
                   .weight = 1,
                   .total = 0};
  for (const auto& [name, weight] : config.tenants) {
    rules.total += weight;
    if (name == tenant_class) rules.weight = weight;
  }
  if (rules.total == 0) rules.total = 1;
  return rules;
}

Status InsertSlot(Statement& insert, const StoredConfig& stored, const Slot& slot,
                  std::string_view payload) {
  insert.BindAll(slot.event_id, stored.id, stored.config.window_size, slot.window_start,
                 slot.scheduled, slot.requested, slot.tenant, ClassOf(stored.config, slot.tenant),
                 MachineMillis());
  if (payload.empty()) {
    insert.BindNull(10);
  } else {
    insert.Bind(10, payload);
  }
  return insert.Run();
}

// Assigns the asks at `indexes`, which are of one class and sorted by time.
Status AssignClass(Connection& connection, const StoredConfig& stored,
                   std::string_view tenant_class, std::span<const Ask> asks,
                   const std::vector<std::size_t>& indexes, Timing& timing,
                   std::vector<Answer>& answers) {
  const Config& config = stored.config;
  WindowTable table(connection, stored.id, config.window_size, config.max_per_window,
                    std::string(tenant_class));
  std::vector<Millis> earliest;
  earliest.reserve(indexes.size());
  for (std::size_t index : indexes) earliest.push_back(*timing.Earliest(asks[index].requested));
  const std::vector<OpenTime> open = timing.Open(earliest);
  auto placed = Place(RulesFor(config, tenant_class), earliest, open, table);
  if (!placed.ok()) return placed.error();
  Result<Statement> insert = connection.Prepare(kInsertEvent);
  if (!insert.ok()) return insert.error();
  for (std::size_t k = 0; k < indexes.size(); ++k) {
    const Ask& ask = asks[indexes[k]];
    Answer& answer = answers[indexes[k]];
    const std::optional<Millis>& window = (*placed)[k];
    answer.outcome = window ? Outcome::kNew : Outcome::kExhausted;
    if (!window) continue;
    const Millis from = OpenFrom(open, *window, config.window_size, earliest[k]);
    answer.slot = {ask.event_id, ask.config,
                   ask.tenant,   ask.requested,
                   *window,      ScheduledIn(*window, config.window_size, from, ask.random)};
    if (Status s = InsertSlot(*insert, stored, answer.slot, ask.payload); !s.ok()) return s;
  }
  return {};
}

// The outcome of an ask whose event already exists.
Outcome OutcomeOf(const StoredSlot& there, const Ask& ask) {
  // External events were assigned before payloads were stored.
  const bool same = there.slot.config == ask.config && there.slot.requested == ask.requested &&
                    there.slot.tenant == ask.tenant &&
                    (there.state == State::kExternal || there.payload == ask.payload);
  // Even if the event was cancelled: this ask is for another event, which must not be dropped
  // silently.
  if (!same) return Outcome::kConflict;
  return there.state == State::kCancelled ? Outcome::kCancelled : Outcome::kExisting;
}

// A slot of an older window size also took up room in windows of the present size.
Status Uncarry(Connection& connection, const StoredSlot& gone, const Config& config) {
  return connection.Run(kUncarry, gone.config_id, config.window_size,
                        WindowOf(gone.slot.scheduled, config.window_size), config.max_per_window);
}

}  // namespace

Result<std::optional<StoredSlot>> LoadSlot(Connection& connection, std::string_view event_id) {
  Result<Statement> query = connection.Prepare(kLoadSlot);
  if (!query.ok()) return query.error();
  Result<bool> row = query->Bind(1, event_id).Step();
  if (!row.ok()) return row.error();
  if (!*row) return std::optional<StoredSlot>();
  Result<std::string> name = NameOf(connection, query->Int(0));
  if (!name.ok()) return name.error();
  return std::optional<StoredSlot>(
      StoredSlot{query->Int(0), query->Int(1),
                 Slot{.event_id = std::string(event_id),
                      .config = std::move(*name),
                      .tenant = std::string(query->Text(5)),
                      .requested = query->Int(4),
                      .window_start = query->Int(2),
                      .scheduled = query->Int(3)},
                 static_cast<State>(query->Int(6)), query->Int(7), query->Int(8), query->Int(9),
                 query->Int(10), query->Int(11), query->Int(12), std::string(query->Text(13)),
                 std::string(query->Text(14))});
}

Status AssignGroup(Connection& connection, std::span<const Ask> asks, const ConfigGroup& group,
                   std::vector<Answer>& answers) {
  std::vector<std::size_t> fresh;
  for (std::size_t index : group.asks) {
    Result<std::optional<StoredSlot>> existing = LoadSlot(connection, asks[index].event_id);
    if (!existing.ok()) return existing.error();
    if (existing->has_value()) {
      answers[index] = {OutcomeOf(**existing, asks[index]), std::move((*existing)->slot)};
      continue;
    }
    Result<std::optional<Event>> left = LookInArchive(connection, asks[index].event_id);
    if (!left.ok()) return left.error();
    if (left->has_value()) {
      const Event& event = **left;
      // The archive keeps no payloads, so there is nothing to compare with.
      const StoredSlot there{
          .slot = event.slot, .state = event.state, .payload = asks[index].payload};
      answers[index] = {OutcomeOf(there, asks[index]), event.slot};
    } else {
      fresh.push_back(index);
    }
  }
  if (fresh.empty()) return {};
  Result<std::optional<StoredConfig>> stored = LoadActive(connection, group.config);
  if (!stored.ok()) return stored.error();
  if (!stored->has_value()) {
    for (std::size_t index : fresh) answers[index].outcome = Outcome::kUnknownConfig;
    return {};
  }
  std::map<std::string_view, std::vector<std::size_t>> classes;
  Timing timing((*stored)->config, MachineMillis());
  for (std::size_t index : fresh) {
    if (!timing.Earliest(asks[index].requested)) {
      answers[index].outcome = Outcome::kPast;
      continue;
    }
    classes[ClassOf((*stored)->config, asks[index].tenant)].push_back(index);
  }
  for (const auto& [tenant_class, indexes] : classes) {
    Status s = AssignClass(connection, **stored, tenant_class, asks, indexes, timing, answers);
    if (!s.ok()) return s;
  }
  return {};
}

Result<std::optional<Millis>> TakePlace(Connection& connection, const StoredConfig& stored,
                                        std::string_view tenant, Millis earliest,
                                        std::span<const OpenTime> open) {
  const Config& config = stored.config;
  const std::string_view tenant_class = ClassOf(config, tenant);
  WindowTable table(connection, stored.id, config.window_size, config.max_per_window,
                    std::string(tenant_class));
  auto placed = Place(RulesFor(config, tenant_class), {&earliest, 1}, open, table);
  if (!placed.ok()) return placed.error();
  return placed->front();
}

Status FreePlace(Connection& connection, const StoredSlot& gone) {
  Result<std::optional<StoredConfig>> latest = LoadLatest(connection, gone.slot.config);
  if (!latest.ok()) return latest.error();
  const Config config = latest->has_value() ? (*latest)->config : Config{};
  const bool same_size = config.window_size == gone.window_size;
  WindowTable table(connection, gone.config_id, gone.window_size,
                    same_size ? config.max_per_window : std::numeric_limits<std::int64_t>::max(),
                    std::string(ClassOf(config, gone.slot.tenant)));
  if (Status s = table.GiveBack(gone.slot.window_start); !s.ok()) return s;
  if (config.window_size == 0 || same_size) return {};
  return Uncarry(connection, gone, config);
}

}  // namespace weir::slots::sqlite
