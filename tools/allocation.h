#pragma once
// How the program's heap behaves.

namespace zeroplan {

// From the start on: large temporaries go back to the system at once, as they come before the run needs its arenas.
void return_freed_memory();
// Between the preparation of a run and its first step: gives back what is left, then keeps what is freed. Libraries allocate packing
// buffers inside each call, which glibc would map and unmap every time.
void keep_freed_memory();

}  // namespace zeroplan
