#include "tools/allocation.h"

#include <malloc.h>

namespace zeroplan {

void return_freed_memory() { mallopt(M_MMAP_THRESHOLD, 128 << 10); }

void keep_freed_memory() {
  malloc_trim(0);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

}  // namespace zeroplan
