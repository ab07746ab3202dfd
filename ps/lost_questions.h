#ifndef PARASOL_PS_LOST_QUESTIONS_H_
#define PARASOL_PS_LOST_QUESTIONS_H_

#include "absl/time/time.h"

namespace parasol {

// The times at which a ps asks the chief about primaries whose streams have
// ended: at once, soon again, as a port may be open for a moment longer than
// its connections, then less often. After the last time their leases have run
// out. Pure.
class LostQuestions {
 public:
  static constexpr absl::Duration kFirst = absl::Milliseconds(10);
  static constexpr absl::Duration kLongest = absl::Seconds(1);
  static constexpr absl::Duration kLimit = absl::Seconds(15);

  // Notes that a stream has ended.
  void NoteLost(absl::Time now);
  // Returns true if it is time to ask, however late that is, and counts as the
  // question. Ask who is lost after this: a later loss is noted after it.
  bool Take(absl::Time now);
  // The time of the next question; InfiniteFuture: there is none.
  absl::Time next() const { return next_; }

 private:
  absl::Time lost_at_ = absl::InfinitePast();
  absl::Time next_ = absl::InfiniteFuture();
};

}  // namespace parasol

#endif  // PARASOL_PS_LOST_QUESTIONS_H_
