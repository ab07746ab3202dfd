#ifndef PARASOL_CLUSTER_TRUST_MUTUAL_PROOF_H_
#define PARASOL_CLUSTER_TRUST_MUTUAL_PROOF_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

// A proof in both directions, at the opening of a connection, that its two ends
// have one secret, which is not sent. The one that opens it says a hello with a
// nonce; the other answers with a nonce of its own and the proof of its side;
// the first checks that and sends its own proof. A proof is an HMAC-SHA-256 of
// the side, the whole hello and the nonce of the answer, so that no proof is
// good for another connection, or sent back to where it came from.
namespace parasol {

inline constexpr size_t kNonceBytes = 16;
inline constexpr size_t kProofBytes = 32;

enum class ProofSide : char { kOpener = 'o', kAnswerer = 'a' };

// Returns random bytes of the kernel's generator.
std::string DrawNonce();

std::string ProofOf(absl::string_view secret, ProofSide side,
                    absl::string_view hello, absl::string_view answer_nonce);

// Returns true if `proof` is ProofOf() the same; takes as long wherever it
// differs.
bool IsProof(absl::string_view proof, absl::string_view secret, ProofSide side,
             absl::string_view hello, absl::string_view answer_nonce);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_MUTUAL_PROOF_H_
