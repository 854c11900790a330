/** The principal of the page: the owner of the machine, who is "you". */
export const LOCAL_OWNER = 'local';
