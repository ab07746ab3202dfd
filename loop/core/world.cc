#include "loop/core/world.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "ml/tape/tensor.h"

namespace parasol::loop {
namespace {

// The replica whose step a thread is in.
struct Place {
  World* world = nullptr;
  int local = -1;
};
thread_local Place current;

std::vector<std::string> NamesOf(const std::vector<std::string>& devices,
                                 int first) {
  std::vector<std::string> names;
  for (size_t i = 0; i < devices.size(); ++i) {
    names.push_back(absl::StrCat("replica ", first + static_cast<int>(i), " (",
                                 devices[i], ")"));
  }
  return names;
}

}  // namespace

World::World(const std::vector<std::string>& names,
             std::vector<std::unique_ptr<Device>> devices, Peers& peers)
    : names_(NamesOf(names, peers.place() * static_cast<int>(names.size()))),
      devices_(std::move(devices)),
      peers_(peers),
      meeting_(names_),
      calls_(names.size()),
      draws_(names.size()) {}

absl::Status World::Run(const std::function<absl::Status(int local)>& step) {
  if (current.world != nullptr) {
    return absl::FailedPreconditionError(
        "Run() within a step: a step calls functions, and the program runs "
        "steps");
  }
  meeting_.Begin();
  ++steps_;
  std::fill(draws_.begin(), draws_.end(), 0);
  const absl::Status result = calls_.Run([&](size_t number) {
    const int local = static_cast<int>(number);
    current = {.world = this, .local = local};
    const absl::Cleanup leave = [] { current = {}; };
    const absl::Status own =
        FromReplica(local, CatchExceptions([&] { return step(local); }));
    meeting_.End(local, own);
    return own;
  });
  // The first error; another replica may have ended well.
  const absl::Status failure = meeting_.failure();
  absl::Status status = failure.ok() ? result : failure;
  for (const StepEnd& end : ends_) status.Update(end(status));
  return status;
}

absl::Status World::FromReplica(int local, const absl::Status& result) const {
  // What all replicas have met with is no replica's.
  if (result.ok() || num_local() == 1 || !meeting_.failure().ok()) {
    return result;
  }
  return absl::Status(result.code(),
                      absl::StrCat(names_[local], ": ", result.message()));
}

int World::current_local() const {
  return current.world == this ? current.local : -1;
}

World* World::Current() { return current.world; }

absl::Status CatchExceptions(absl::FunctionRef<absl::Status()> call) {
  try {
    return call();
  } catch (const TensorError& error) {
    return error.status();
  } catch (const absl::BadStatusOrAccess& error) {
    return error.status();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("exception: ", error.what()));
  } catch (...) {
    return absl::InternalError("exception of no std::exception");
  }
}

}  // namespace parasol::loop
