#include "coordinator/steps/departed_workers.h"

namespace parasol {

bool DepartedWorkers::Add(uint64_t incarnation, const Worker& worker) {
  Extract(incarnation);
  const int64_t number = next_number_++;
  workers_[incarnation] = {.worker = worker, .number = number};
  order_[number] = incarnation;
  if (workers_.size() <= kMax) return true;
  Extract(order_.begin()->second);
  return false;
}

std::optional<DepartedWorkers::Worker> DepartedWorkers::Extract(
    uint64_t incarnation) {
  auto it = workers_.find(incarnation);
  if (it == workers_.end()) return std::nullopt;
  const Worker worker = it->second.worker;
  order_.erase(it->second.number);
  workers_.erase(it);
  return worker;
}

const DepartedWorkers::Worker* DepartedWorkers::Find(
    uint64_t incarnation) const {
  auto it = workers_.find(incarnation);
  return it == workers_.end() ? nullptr : &it->second.worker;
}

void DepartedWorkers::AddTo(
    std::vector<durable::WorkerProgress>& progress) const {
  for (const auto& [number, incarnation] : order_) {
    durable::WorkerProgress& entry = progress.emplace_back();
    entry.set_incarnation(incarnation);
    entry.set_completed_steps(workers_.at(incarnation).worker.completed);
  }
}

}  // namespace parasol
