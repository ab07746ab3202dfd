#include "parameters/client/peer_wait_report.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "base/shown_text.h"
#include "cluster/rpc/proto_duration.h"

namespace parasol {
namespace {

// Bytes of a reason that travel.
constexpr size_t kMaxTroubleBytes = 300;

}  // namespace

void PeerWaitReport::Report(std::vector<TrainingParameters::PeerWait> waits,
                            absl::Time now, wire::HeartbeatRequest& request) {
  if (waits.size() != peers_) recent_ = {};
  peers_ = waits.size();
  std::vector<double> owed;
  for (const auto& wait : waits) {
    owed.push_back(absl::ToDoubleSeconds(wait.owed));
  }
  const std::vector<double> shares = recent_.Rates(std::move(owed), now);
  std::vector<wire::PsWait> all;
  for (size_t i = 0; i < waits.size(); ++i) {
    wire::PsWait& wait = all.emplace_back();
    wait.set_shard(waits[i].shard);
    wait.set_share(std::min(1., shares[i]));
    if (waits[i].since) *wait.mutable_since() = ToProto(*waits[i].since);
    // What a peer has written may be no UTF-8, and a letter may be cut.
    wait.set_trouble(OneLine(
        absl::string_view(waits[i].trouble).substr(0, kMaxTroubleBytes)));
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    if (a.trouble().empty() != b.trouble().empty()) return b.trouble().empty();
    return a.share() > b.share();
  });
  if (all.size() > kMaxReportedWaits) all.resize(kMaxReportedWaits);
  for (wire::PsWait& wait : all) *request.add_ps_wait() = std::move(wait);
}

}  // namespace parasol
