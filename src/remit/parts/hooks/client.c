/* SOCKET SECONDS TAG STARTER...: sends stdin to the guard and prints its answer; ends with 2 on every failure. Without libc.
   gcc -Os -static -nostdlib -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables -s -Wl,--build-id=none -Wl,-z,noseparate-code -o client-MACHINE client.c */
#include <linux/un.h>
#include <sys/syscall.h>
#ifdef __x86_64__
__asm__(".globl _start\n_start: mov %rsp,%rdi\nand $-16,%rsp\ncall run");
static long sys(long n, long a, long b, long c, long d, long e) {
  register long r10 __asm__("r10") = d, r8 __asm__("r8") = e;
  __asm__ volatile("syscall" : "+a"(n) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory"); return n; }
#else
__asm__(".globl _start\n_start: mov x0,sp\nbl run");
static long sys(long n, long a, long b, long c, long d, long e) {
  register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory"); return x0; }
#endif
static void quit(long s) { if (s < 0) sys(SYS_write, 2, (long)"remit guard: no answer; the call is not made\n", 45, 0, 0); for (;;) sys(SYS_exit_group, s < 0 ? 2 : s, 0, 0, 0, 0); }
static void put(long fd, char *p, long n) { for (long k; n; p += k, n -= k) if ((k = sys(SYS_write, fd, (long)p, n, 0, 0)) <= 0) quit(-1); }
static long take(long fd, char *p, long m, long end) { long n = 0, k; while ((k = sys(SYS_read, fd, (long)p + n, m - n, 0, 0)) > 0) if (p[(n += k) - 1] == end) break; if (k < 0 || n == m) quit(-1); return n; }
void run(long *top) {
  static char b[1 << 26]; static struct sockaddr_un at; long i, n, wait[2] = {0, 0}, s = sys(SYS_socket, 1, 1, 0, 0, 0); char **v = (char **)top + 1, *p;
  if (*top < 5) quit(-1);
  at.sun_family = 1;
  for (i = 0; v[1][i]; i++) if (i < (long)sizeof at.sun_path - 1) at.sun_path[i] = v[1][i]; else quit(-1);
  if (sys(SYS_connect, s, (long)&at, sizeof at, 0, 0)) { sys(SYS_execve, (long)v[4], (long)(v + 4), (long)(v + *top + 1), 0, 0); quit(-1); }
  for (p = v[2]; *p; p++) wait[0] = wait[0] * 10 + *p - '0';
  if (sys(SYS_setsockopt, s, 1, 20, (long)wait, sizeof wait)) quit(-1);
  for (n = 0; v[3][n]; n++) b[n] = v[3][n];
  b[n++] = '\n', p = b + n + 8, i = take(0, p, sizeof b - n - 8, -999), __builtin_memcpy(p - 8, &i, 8); /* at once, so that the guard wakes once */
  put(s, b, n + 8 + i), n = take(s, b, sizeof b, '\n');
  if (n < 2 || b[n - 1] != '\n' || (*b != '0' && *b != '2')) quit(-1);
  if (n > 2) put(*b == '0' ? 1 : 2, b + 1, n - 1);
  quit(*b - '0'); }
