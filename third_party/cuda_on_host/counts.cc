#include "third_party/cuda_on_host/counts.h"

#include <map>
#include <mutex>

#include "third_party/cuda_on_host/runtime.h"

namespace cuda_on_host {
namespace {

bool notes_work = false;

// By device.
std::map<int, std::string>& Notes() {
  static auto* const notes = new std::map<int, std::string>;
  return *notes;
}

}  // namespace

void NoteWork() {
  const std::lock_guard<std::recursive_mutex> lock(TheLock());
  notes_work = true;
  Notes().clear();
}

std::string WorkOf(int device) {
  const std::lock_guard<std::recursive_mutex> lock(TheLock());
  return Notes()[device];
}

void NoteDone(int device, char work) {
  if (notes_work) Notes()[device] += work;
}

Counts& TheCounts() {
  static Counts counts;
  return counts;
}

Counts CountsSoFar() {
  const std::lock_guard<std::recursive_mutex> lock(TheLock());
  return TheCounts();
}

}  // namespace cuda_on_host
