#ifndef PARASOL_DEPLOY_LOCAL_STOP_SIGNALS_H_
#define PARASOL_DEPLOY_LOCAL_STOP_SIGNALS_H_

#include <memory>

namespace parasol {

// The SIGTERM and SIGINT that a launcher is sent. Must be constructed before
// any thread starts, because it blocks them for all threads. One per process.
// Thread-safe.
//
// The first one asks for an end in good order, the second one for an end at
// once, with the result. The third one ends the process wherever it is, with
// 128 plus the first signal; before ExpectSecond() the second one does that.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Says that this process looks at count() from now on.
  void ExpectSecond();

  // Returns the first signal; 0 if none has come.
  int first() const;
  // Returns how many have come.
  int count() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_STOP_SIGNALS_H_
