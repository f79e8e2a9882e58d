/* What a stand-in is told to be: "name=value,name=value" in a variable, or in a file of the host where it is not set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *told(const char *variable, const char *path, const char *name, char *room, size_t size) {
    static __thread char line[1024]; /* a stream has a thread of its own */
    const char *text = getenv(variable);
    if (!text) {
        FILE *file = fopen(path, "r");
        line[0] = 0;
        if (file && !fgets(line, sizeof line, file)) line[0] = 0;
        if (file) fclose(file);
        line[strcspn(line, "\n")] = 0;
        text = line;
    }
    while (*text) {
        size_t whole = strcspn(text, ","), length = strlen(name);
        if (!strncmp(text, name, length) && text[length] == '=') {
            size_t part = whole - length - 1;
            if (part >= size) part = size - 1;
            memcpy(room, text + length + 1, part);
            room[part] = 0;
            return room;
        }
        text += whole + (text[whole] == ',');
    }
    return "";
}
