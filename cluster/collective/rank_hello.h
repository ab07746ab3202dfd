#ifndef PARASOL_CLUSTER_COLLECTIVE_RANK_HELLO_H_
#define PARASOL_CLUSTER_COLLECTIVE_RANK_HELLO_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "cluster/collective/collective_group.h"
#include "cluster/trust/mutual_proof.h"

namespace parasol {

// The first bytes of a connection between two ranks: the one that connects says
// which rank of which group it is, and the other challenges or refuses it. Then
// both prove that they have the group's secret (cluster/trust/mutual_proof),
// which no connection carries: the challenge, a nonce and the proof of the
// called one; the proof of the one that connects; and the welcome.
struct RankHello {
  static constexpr size_t kBytes = 8 + 8 + 8 + 4 + 4 + kNonceBytes + 8;
  // Bytes that follow the answer kChallenge.
  static constexpr size_t kChallengeBytes = kNonceBytes + kProofBytes;

  int64_t epoch = 0;
  uint64_t members = 0;  // FingerprintOfMembers()
  int from = 0;
  int to = 0;
  std::string nonce = std::string(kNonceBytes, '\0');

  // Returns the hello of `group`'s own rank to rank `to`, without a nonce.
  static RankHello Of(const CollectiveGroup& group, int to);

  // Returns the hello as it travels: "PCLrank3", where the last letter is the
  // version of all that ranks say to each other, the fields and their checksum.
  std::string Encode() const;
  // Returns the hello that the bytes are or begin with, or nullopt if they are
  // none, damaged or too few.
  static std::optional<RankHello> Parse(absl::string_view bytes);
  // Returns true if the bytes are none, however many follow.
  static bool IsOther(absl::string_view bytes);
  // Returns true if the bytes are the hello of a rank that speaks another
  // version.
  static bool IsOfOtherVersion(absl::string_view bytes);
};

// The answer to a hello. No two differ in one bit.
enum class HelloAnswer : char {
  kChallenge = 'c',     // the hello names this group
  kWelcome = 'W',       // the proof was right
  kTooEarly = 'E',      // the group has not been joined there yet
  kOver = 'O',          // a later group has been joined there
  kRefused = 'R',       // another planner, or other ranks
  kOtherVersion = 'X',  // RankHello::IsOfOtherVersion()
};

// Returns a number that two groups share if they have the same ranks and sum
// by the same planner.
uint64_t FingerprintOfMembers(const CollectiveGroup& group);

// Returns the answer of a process that has joined `group` last, if any, to the
// hello of a connection: never kWelcome, which takes a proof.
HelloAnswer AnswerTo(const RankHello& hello,
                     const std::optional<CollectiveGroup>& group);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_RANK_HELLO_H_
