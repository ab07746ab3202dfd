#include "tests/simulation/process.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

Process::Process(World& world, TaskId place, int number)
    : world_(world),
      place_(std::move(place)),
      number_(number),
      incarnation_(world.random().Next() | 1),
      clock_(world.loop().now()),
      clock_set_(clock_) {}

wire::Task Process::task() const {
  wire::Task task;
  task.set_role(place_.role);
  task.set_index(place_.index);
  task.set_incarnation(incarnation_);
  task.set_chief_epoch(chief_epoch_);
  return task;
}

std::string Process::name() const {
  return absl::StrCat(place_.ToString(), "#", number_);
}

}  // namespace parasol::simulation
