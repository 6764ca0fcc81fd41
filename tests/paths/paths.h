#pragma once
// Where the tests find what they run on; the only file whose objects know the machine's folders.
namespace zeroplan {

extern const char* const kSourceFolder;  // of the checkout
extern const char* const kProgram;       // zeroplan, as built

}  // namespace zeroplan
