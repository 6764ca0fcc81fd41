#include "cudart/quiet.h"

#ifdef CUDA_HOST_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace cuda_host::rt {

#ifdef CUDA_HOST_TSAN
namespace {
template <class Mark>
void unmuffled(Mark mark) {
  const int depth = Quiet::depth;
  for (int i = 0; i < depth; ++i) AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  mark();
  for (int i = 0; i < depth; ++i) AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}
}  // namespace
void mark_release(void* token) {
  unmuffled([=] { __tsan_release(token); });
}
void mark_acquire(void* token) {
  unmuffled([=] { __tsan_acquire(token); });
}
#else
void mark_release(void*) {}
void mark_acquire(void*) {}
#endif

}  // namespace cuda_host::rt
