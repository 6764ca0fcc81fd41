// peak COMMAND…: runs it, and prints the most memory that it has had, in bytes, as "peak N" on standard error.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const pid_t child = fork();
  if (child == 0) {
    execv(argv[1], argv + 1);
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  std::fprintf(stderr, "peak %lld\n", static_cast<long long>(usage.ru_maxrss) * 1024);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
