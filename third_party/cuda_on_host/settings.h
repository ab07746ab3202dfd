#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_SETTINGS_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_SETTINGS_H_

#include <cstdint>
#include <string>
#include <string_view>

// Settings of the environment, read when they are first asked for, and what
// tests ask.
namespace cuda_on_host {

// The kind of work that is put off until the host needs it, or work that the
// host waits for.
enum class Late { kNothing, kCompute, kCopyIn, kCopyOut, kRandom };

struct Schedule {
  uint64_t seed = 1;
  Late late = Late::kNothing;
};

// Reads "<seed>[,none|compute|copy-in|copy-out|random]". Ends the program if
// `text` is something else.
Schedule ParseSchedule(std::string_view text);

// PARASOL_CUDA_ON_HOST_SCHEDULE.
const Schedule& TheSchedule();
// Replaces the schedule; only for tests of the stand-in.
void SetSchedule(const Schedule& schedule);

// Two readings of CUDA's documentation: a launch of a graph marks its external
// events, or each is marked when its node runs, so that a host that waits right
// behind the launch waits for nothing. PARASOL_CUDA_ON_HOST_EXTERNAL_EVENTS:
// "launch", the default, or "run".
enum class Mark { kAtLaunch, kWhenRun };
Mark ExternalEvents();
// Replaces it; only for tests.
void SetExternalEvents(Mark mark);

// Returns false if PARASOL_CUDA_ON_HOST_ACCESSES is "unchecked": then what the
// threads of grids read and write is not looked at (check.h).
bool ChecksAccesses();

// Number of devices: PARASOL_CUDA_ON_HOST_DEVICES, otherwise 1.
int DeviceCount();

// Returns the status that PARASOL_CUDA_ON_HOST_FAULT ("name=status[@call],…")
// has for this call of the function `name`, counted from 1; 0 if none. One
// below 0 is a signal, which the process sends itself.
int FaultOf(const char* name);
// Replaces the faults, forgets the calls, and brings lost devices back; only
// for tests.
void SetFaults(const std::string& faults);

// Makes `status` the one of all later calls of the runtime if CUDA does so: an
// error of a kernel, 700 to 719, ends what the process can do with devices. The
// errors of peer access among these do not.
void LoseDevicesIfFatal(int status);
// Returns the status with which devices were lost; 0 if they were not.
int LostStatus();
// Returns true if `function` of a library fails as devices are lost. What it
// has on the host can be destroyed all the same.
bool IsLostFor(std::string_view function);

// Two questions for tests. HasContext() returns true if a context was made on
// the device, which costs a real one some hundred MB. SpinningWaits() returns
// the number of waits for an event so far that would have kept a core busy.
bool HasContext(int device);
int SpinningWaits();

// Ends the program with one line.
[[noreturn]] void Die(const std::string& message);

// A generator of pseudo-random numbers (splitmix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  uint64_t Below(uint64_t bound) { return Next() % bound; }

 private:
  uint64_t state_;
};

// The generator that all choices of the schedule come from.
Random& TheRandom();

}  // namespace cuda_on_host

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_SETTINGS_H_
