#include "weir/engine.h"

#include <utility>

#include "engine/table.h"

namespace weir {

class Engine::Table : public engine::Table {
  using engine::Table::Table;
};

Engine::Engine(const Quota& default_quota, EngineOptions options)
    : table_(std::make_unique<Table>(default_quota, std::move(options))) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

Decision Engine::TryAcquire(std::string_view key, std::int64_t cost) {
  return table_->Acquire(key, nullptr, cost);
}
Decision Engine::TryAcquire(std::string_view key, const Quota& quota, std::int64_t cost) {
  return table_->Acquire(key, &quota, cost);
}
void Engine::TryAcquireBatch(std::span<const Ask> asks, std::span<Decision> decisions) {
  table_->AcquireBatch(asks, decisions);
}
bool Engine::TryAcquireAll(std::span<const Ask> asks, std::span<Decision> decisions, Nanos* at) {
  return table_->AcquireAll(asks, decisions, at);
}
bool Engine::TryReserveAll(std::span<const Ask> asks, std::chrono::nanoseconds lasts,
                           std::span<Decision> decisions, Nanos* at) {
  return table_->ReserveAll(asks, lasts.count(), decisions, at);
}
Decision Engine::Peek(std::string_view key, std::int64_t cost) {
  return table_->Peek(key, nullptr, cost);
}
Decision Engine::Peek(std::string_view key, const Quota& quota, std::int64_t cost) {
  return table_->Peek(key, &quota, cost);
}
Decision Engine::Overdraw(std::string_view key, std::int64_t cost) {
  return table_->Overdraw(key, nullptr, cost);
}
Decision Engine::Overdraw(std::string_view key, const Quota& quota, std::int64_t cost) {
  return table_->Overdraw(key, &quota, cost);
}
Decision Engine::Refund(std::string_view key, std::int64_t cost) {
  return table_->Refund(key, nullptr, cost);
}
Decision Engine::Refund(std::string_view key, const Quota& quota, std::int64_t cost) {
  return table_->Refund(key, &quota, cost);
}
bool Engine::Release(std::string_view key, std::int64_t lease) {
  return table_->Release(key, nullptr, lease);
}
bool Engine::Release(std::string_view key, const Quota& quota, std::int64_t lease) {
  return table_->Release(key, &quota, lease);
}
LeaseGrant Engine::Lease(std::string_view key, const Quota& quota, std::int64_t want) {
  return table_->Lease(key, quota, want);
}
Decision Engine::Adjust(std::string_view key, const Quota& quota, Nanos stamp,
                        std::int64_t change) {
  return table_->Adjust(key, quota, stamp, change);
}
Decision Engine::Return(std::string_view key, const Quota& quota, Nanos at, std::int64_t count) {
  return table_->Return(key, quota, at, count);
}
void Engine::Reset(std::string_view key) { table_->Reset(key); }
void Engine::SetQuota(std::string_view key, const Quota& quota) { table_->SetQuota(key, quota); }
void Engine::ClearQuota(std::string_view key) { table_->ClearQuota(key); }
void Engine::Clear() { table_->Clear(); }
std::size_t Engine::Sweep() { return table_->Sweep(); }
std::size_t Engine::size() const { return table_->size(); }
EngineStats Engine::stats() const { return table_->stats(); }
void Engine::Visit(const std::function<void(const KeyView&)>& visitor) const {
  table_->Visit(visitor);
}
Status Engine::Save(std::ostream& out) const { return table_->Save(out); }
Status Engine::Load(std::istream& in) { return table_->Load(in); }
std::size_t Engine::SaveChanges(std::string& out) { return table_->SaveChanges(out); }
void Engine::SaveIdentity(std::string& out) const { table_->SaveIdentity(out); }
Status Engine::LoadChanges(std::string_view bytes) { return table_->LoadChanges(bytes); }

}  // namespace weir
