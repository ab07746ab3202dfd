#include "loop/peers/peer_watch.h"

#include <utility>

#include "base/log.h"

namespace parasol {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(10);

}  // namespace

PeerWatch::PeerWatch(Options options, Clock& clock)
    : options_(std::move(options)), clock_(clock), thread_([this] { Run(); }) {}

PeerWatch::~PeerWatch() {
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
  }
  thread_.join();
}

void PeerWatch::Begin(const std::string& what) {
  absl::MutexLock lock(&mu_);
  since_ = clock_.Now();
  what_ = what;
}

void PeerWatch::End() {
  absl::MutexLock lock(&mu_);
  since_ = absl::InfiniteFuture();
}

void PeerWatch::Run() {
  while (true) {
    absl::Duration waited;
    std::string what;
    {
      absl::MutexLock lock(&mu_);
      if (clock_.AwaitWithTimeout(mu_, absl::Condition(&stopped_), kInterval)) {
        return;
      }
      waited = clock_.Now() - since_;
      what = what_;
    }
    if (waited < kInterval) continue;
    LOG(WARNING) << what << ": waiting for " << options_.awaited() << " since "
                 << absl::FormatDuration(absl::Trunc(waited, absl::Seconds(1)));
    if (waited >= options_.limit) options_.give_up();
  }
}

}  // namespace parasol
